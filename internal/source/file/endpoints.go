package file

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// endpoints is deprecated in clusters, but stands in many files.
//
//lint:ignore SA1019 What files hold must be read.
type endpoints = corev1.Endpoints

// A substitute delivers the Endpoints of Services that have no EndpointSlice,
// as EndpointSlices. Services are named by the keys of their Endpoints.
type substitute struct {
	// slices counts the real EndpointSlices of each Service.
	slices map[key]int
	// given has what was delivered in the place of Endpoints.
	given map[key][]*discoveryv1.EndpointSlice
	// doubted has the Services for which that may have changed.
	doubted map[key]bool
}

func newSubstitute() *substitute {
	return &substitute{slices: make(map[key]int), given: make(map[key][]*discoveryv1.EndpointSlice), doubted: make(map[key]bool)}
}

// see takes note of an object that was something else before, or is nil or
// was nil.
func (s *substitute) see(k key, was, is metav1.Object) {
	if k.kind == "Endpoints" {
		s.doubted[k] = true
	}
	s.count(was, -1)
	s.count(is, 1)
}

func (s *substitute) count(o metav1.Object, by int) {
	slice, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || slice.Labels[discoveryv1.LabelServiceName] == "" {
		return
	}
	k := key{"Endpoints", slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]}
	s.doubted[k] = true
	if s.slices[k] += by; s.slices[k] == 0 {
		delete(s.slices, k)
	}
}

// flush gives what changes for the Services that were doubted. The function
// gives the object of a key that counts.
func (s *substitute) flush(winner func(key) metav1.Object) []source.Change {
	var changes []source.Change
	for k := range s.doubted {
		var now []*discoveryv1.EndpointSlice
		if e, ok := winner(k).(*endpoints); ok && s.slices[k] == 0 {
			now = toSlices(e)
		}
		changes = append(changes, difference(s.given[k], now)...)
		if s.given[k] = now; len(now) == 0 {
			delete(s.given, k)
		}
	}
	clear(s.doubted)
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

// toSlices makes an EndpointSlice of each subset and address family. Their
// names hold a colon, so that no object in a file can have the same.
func toSlices(e *endpoints) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for i, subset := range e.Subsets {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			list := appendAddresses(nil, subset.Addresses, family, true)
			list = appendAddresses(list, subset.NotReadyAddresses, family, false)
			if len(list) == 0 {
				continue
			}
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: e.Namespace, Name: fmt.Sprintf("%s:%d:%s", e.Name, i, family),
					Labels: map[string]string{discoveryv1.LabelServiceName: e.Name},
				},
				AddressType: family, Endpoints: list, Ports: toPorts(subset.Ports),
			}
			completeSlice(slice)
			all = append(all, slice)
		}
	}
	return all
}

func toPorts(old []corev1.EndpointPort) []discoveryv1.EndpointPort {
	var ports []discoveryv1.EndpointPort
	for _, p := range old {
		port := discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, AppProtocol: p.AppProtocol}
		if p.Protocol != "" {
			port.Protocol = &p.Protocol
		}
		ports = append(ports, port)
	}
	return ports
}

func appendAddresses(list []discoveryv1.Endpoint, old []corev1.EndpointAddress, family discoveryv1.AddressType, ready bool) []discoveryv1.Endpoint {
	for _, a := range old {
		if familyOf(a.IP) != family {
			continue
		}
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{a.IP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			NodeName: a.NodeName, TargetRef: a.TargetRef,
		}
		if a.Hostname != "" {
			endpoint.Hostname = &a.Hostname
		}
		list = append(list, endpoint)
	}
	return list
}

// familyOf takes what is no address for one of IPv4: whoever reads the slice
// judges it.
func familyOf(ip string) discoveryv1.AddressType {
	if address, err := netip.ParseAddr(ip); err == nil && address.Is6() {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}
