// Package groups says which edges get the units of which namespaces.
//
// A namespace belongs to the group that its annotation names. One whose object is not known belongs to none, so that
// nothing of it reaches an edge that must not have it. The package must not know what units are.
package groups

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/source"
)

// Default is the group of namespaces without the annotation.
const Default = "default"

// Groups are those of namespaces. Its methods may be called by several goroutines.
type Groups struct {
	// changed is called after a namespace has come into another group.
	changed func()

	mu sync.RWMutex
	of map[string]string
}

// New returns Groups without namespaces.
func New(changed func()) *Groups { return &Groups{changed: changed, of: map[string]string{}} }

// Put takes the namespaces among changes.
func (g *Groups) Put(changes ...source.Change) {
	moved := false
	for _, change := range changes {
		if namespace, is := change.Object.(*corev1.Namespace); is {
			moved = g.put(namespace, change.Deleted) || moved
		}
	}
	if moved {
		g.changed()
	}
}

func (g *Groups) put(namespace *corev1.Namespace, deleted bool) (moved bool) {
	group := namespace.Annotations[source.GroupAnnotation]
	if group == "" {
		group = Default
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.of[namespace.Name]
	if deleted {
		delete(g.of, namespace.Name)
		return was != ""
	}
	g.of[namespace.Name] = group
	return was != group
}

// Takes returns of which namespaces the edges of a group get units; nil, of all, for those without one.
func (g *Groups) Takes(group string) func(namespace string) bool {
	if group == "" {
		return nil
	}
	return func(namespace string) bool {
		g.mu.RLock()
		defer g.mu.RUnlock()
		return g.of[namespace] == group
	}
}
