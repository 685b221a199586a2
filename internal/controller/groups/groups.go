// Package groups says which edges get the units of which namespaces.
//
// A namespace belongs to the group that its annotation names. In a cluster, one whose object is not known belongs to
// none, so that nothing of it reaches an edge that must not have it. The package must not know what units are.
package groups

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/source"
)

// Default is the group of namespaces without the annotation.
const Default = "default"

// Groups are those of namespaces. Its methods may be called by several goroutines.
type Groups struct {
	settings Settings

	mu sync.RWMutex
	of map[string]string
}

// Settings are those of Groups.
type Settings struct {
	// Unknown is the group of namespaces whose objects are not known; empty for none.
	Unknown string
	// Appeared is called for a namespace that is known now, and Moved after some have come into another group.
	Appeared func(namespace string)
	Moved    func()
}

// New returns Groups without namespaces.
func New(s Settings) *Groups { return &Groups{settings: s, of: map[string]string{}} }

// Put takes the namespaces among changes. What was of one that is deleted goes with its objects.
func (g *Groups) Put(changes ...source.Change) {
	moved := false
	for _, change := range changes {
		namespace, is := change.Object.(*corev1.Namespace)
		if !is || change.Deleted {
			continue
		}
		switch was, now := g.put(namespace); was {
		case now:
		case "":
			g.settings.Appeared(namespace.Name)
		default:
			moved = true
		}
	}
	if moved {
		g.settings.Moved()
	}
}

func (g *Groups) put(namespace *corev1.Namespace) (was, now string) {
	if now = namespace.Annotations[source.GroupAnnotation]; now == "" {
		now = Default
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	was = g.group(namespace.Name)
	g.of[namespace.Name] = now
	return was, now
}

// group is that of a namespace, empty for none. What is of no single namespace is in none.
func (g *Groups) group(namespace string) string {
	if group := g.of[namespace]; group != "" || strings.Trim(namespace, "-") == "" {
		return group
	}
	return g.settings.Unknown
}

// Takes returns of which namespaces the edges of a group get units; nil, of all, for those without one.
func (g *Groups) Takes(group string) func(namespace string) bool {
	if group == "" {
		return nil
	}
	return func(namespace string) bool {
		g.mu.RLock()
		defer g.mu.RUnlock()
		return g.group(namespace) == group
	}
}
