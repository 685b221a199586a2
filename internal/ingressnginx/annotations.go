// Package ingressnginx has the annotations of ingress-nginx, present and past, to
// distinguish a typo from an annotation that Headgate does not implement.
package ingressnginx

import (
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// OldPrefix is that of the annotations of ingress-nginx's first versions.
const OldPrefix = "ingress.kubernetes.io"

// A Status says whether ingress-nginx still has an annotation.
type Status string

// The statuses.
const (
	Active  Status = "active"
	Alias   Status = "alias"
	Removed Status = "removed"
)

// An Annotation is one that ingress-nginx has or had.
type Annotation struct {
	Status Status
	// Default is the value without the annotation, empty for none.
	Default string
	// Closes is set if ingress-nginx refuses an Ingress with a bad value, or answers 503
	// on its paths.
	Closes bool
}

//go:embed annotations.txt
var table string

var annotations = sync.OnceValue(func() map[string]Annotation {
	list := map[string]Annotation{}
	for line := range strings.Lines(table) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		list[fields[0]] = Annotation{Status: Status(fields[1]), Default: fields[2], Closes: fields[3] == "deny"}
	}
	return list
})

// Lookup returns the annotation with a name, which has no prefix.
func Lookup(name string) (Annotation, bool) {
	a, ok := annotations()[name]
	return a, ok
}

// Names returns the names of all annotations that ingress-nginx still has, sorted.
func Names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(annotations())), func(name string) bool {
		return annotations()[name].Status == Removed
	})
}

// AsksForNothing reports whether a value is empty or the default, so that it has
// no effect.
func (a Annotation) AsksForNothing(value string) bool {
	value = strings.TrimSpace(value)
	if value == "" || strings.EqualFold(value, a.Default) {
		return true
	}
	want, err := strconv.ParseBool(a.Default)
	got, bad := strconv.ParseBool(value)
	// 1 and 0 are numbers here, and not booleans.
	return err == nil && bad == nil && want == got && len(a.Default) > 1
}
