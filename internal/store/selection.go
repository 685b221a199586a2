package store

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Selection has the changes of Ingresses that are ours.
type Selection struct {
	// Put are newly ours, or have a new version, which may be equal to the
	// previous one.
	Put []*networkingv1.Ingress
	// Gone are not ours any more, or deleted.
	Gone []types.NamespacedName
}

// DrainIngresses returns the changes since the last call, in no order.
func (s *Store) DrainIngresses() Selection {
	var selection Selection
	for name := range s.moved {
		if ing := s.ingresses[name]; ing != nil && ing.ours {
			selection.Put = append(selection.Put, ing.object)
		} else {
			selection.Gone = append(selection.Gone, name)
		}
	}
	clear(s.moved)
	return selection
}

// noteMoved records a new version of an Ingress that is or was ours.
func (s *Store) noteMoved(ing *ingress, wasOurs bool) {
	if ing.ours || wasOurs {
		s.moved.Insert(nameOf(ing.object))
	}
}
