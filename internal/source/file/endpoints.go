package file

import (
	"cmp"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file/manifest"
)

// An endpointsConverter delivers the Endpoints of Services without an
// EndpointSlice as EndpointSlices. Services have the keys of their Endpoints.
type endpointsConverter struct {
	// slices counts the real EndpointSlices of each Service.
	slices map[manifest.Key]int
	// converted has the slices that were delivered for Endpoints.
	converted map[manifest.Key][]*discoveryv1.EndpointSlice
	// dirty has the Services whose slices may have changed.
	dirty map[manifest.Key]bool
}

func newEndpointsConverter() *endpointsConverter {
	return &endpointsConverter{slices: make(map[manifest.Key]int), converted: make(map[manifest.Key][]*discoveryv1.EndpointSlice), dirty: make(map[manifest.Key]bool)}
}

// update records a change of an object; nil if it did not or does not exist.
func (s *endpointsConverter) update(k manifest.Key, was, is metav1.Object) {
	if k.Kind == "Endpoints" {
		s.dirty[k] = true
	}
	s.count(was, -1)
	s.count(is, 1)
}

func (s *endpointsConverter) count(o metav1.Object, by int) {
	slice, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || slice.Labels[discoveryv1.LabelServiceName] == "" {
		return
	}
	k := manifest.Key{Kind: "Endpoints", Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
	s.dirty[k] = true
	if s.slices[k] += by; s.slices[k] == 0 {
		delete(s.slices, k)
	}
}

// flush returns the changes for dirty Services. The function returns the object
// of a key that takes precedence.
func (s *endpointsConverter) flush(winner func(manifest.Key) metav1.Object) []source.Change {
	var changes []source.Change
	for k := range s.dirty {
		var now []*discoveryv1.EndpointSlice
		if e, ok := winner(k).(*manifest.Endpoints); ok && s.slices[k] == 0 {
			now = manifest.ToSlices(e)
		}
		changes = append(changes, difference(s.converted[k], now)...)
		if s.converted[k] = now; len(now) == 0 {
			delete(s.converted, k)
		}
	}
	clear(s.dirty)
	slices.SortFunc(changes, func(a, b source.Change) int {
		return cmp.Or(cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	return changes
}

func difference(was, is []*discoveryv1.EndpointSlice) []source.Change {
	var changes []source.Change
	old := make(map[string]*discoveryv1.EndpointSlice, len(was))
	for _, o := range was {
		old[o.Name] = o
	}
	for _, o := range is {
		if before := old[o.Name]; before == nil || !equality.Semantic.DeepEqual(before, o) {
			changes = append(changes, source.Change{Object: o})
		}
		delete(old, o.Name)
	}
	for _, o := range old {
		changes = append(changes, source.Change{Object: o, Deleted: true})
	}
	return changes
}
