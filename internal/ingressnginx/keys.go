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

// HasKey reports whether ingress-nginx has or had a ConfigMap key.
func HasKey(name string) bool {
	_, found := slices.BinarySearch(keys(), name)
	return found
}
