package ingressnginx

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed keys.txt
var keyTable string

var keys = sync.OnceValue(func() []string { return strings.Fields(keyTable) })

// Keys returns the names of all ConfigMap keys that ingress-nginx has or had, sorted.
func Keys() []string { return slices.Clone(keys()) }
