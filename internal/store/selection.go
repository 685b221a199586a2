package store

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Selection says what became of Ingresses that are ours.
type Selection struct {
	// Put came to be ours, or are so in a new version, which may differ in
	// anything, or in nothing.
	Put []*networkingv1.Ingress
	// Gone are no longer ours, or no longer there.
	Gone []types.NamespacedName
}

// TakeIngresses says what became of Ingresses since the last call, in no order.
func (s *Store) DrainIngresses() Selection {
	var selection Selection
	for name := range s.moved {
		if ing := s.ingresses[name]; ing != nil && ing.ours {
			selection.Put = append(selection.Put, ing.object)
		} else {
			selection.Gone = append(selection.Gone, name)
		}
	}
	if len(s.moved) > 0 {
		s.moved = map[types.NamespacedName]struct{}{}
	}
	return selection
}

// noteMoved notes a new version of an Ingress that is ours or was so before.
func (s *Store) noteMoved(ing *ingress, wasOurs bool) {
	if ing.ours || wasOurs {
		s.moved[nameOf(ing.object)] = struct{}{}
	}
}
