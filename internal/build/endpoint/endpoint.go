// Package endpoint says where requests to a port of a Service go: which port is
// meant, which endpoints of it are ready and nearby, and which DNS name a Service
// stands for.
//
// It is pure, like package build. It knows Services and EndpointSlices and
// nothing of Ingresses, nor of what is set for a backend.
package endpoint

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Readiness says whether an endpoint takes requests.
type Readiness int

const (
	// Ready endpoints take them.
	Ready Readiness = iota
	// Draining ones are about to end and take them still: they are asked where
	// no other is left, and for the sessions that they have.
	Draining
	// NotReady ones don't.
	NotReady
)

func (r Readiness) String() string { return [...]string{"ready", "terminating", "not ready"}[r] }

// ReadinessOf reads an endpoint's conditions.
func ReadinessOf(e *discoveryv1.Endpoint) Readiness {
	isTrue := func(condition *bool) bool { return condition != nil && *condition }
	switch c := &e.Conditions; {
	case c.Ready == nil || *c.Ready:
		return Ready
	case isTrue(c.Serving) && isTrue(c.Terminating):
		return Draining
	}
	return NotReady
}

// An Allowed reports whether requests may be sent to an address.
type Allowed func(netip.AddrPort) bool

// Of are the endpoints of a Service's port that are allowed, sorted and without
// duplicates: the ready ones nearby, or if there is none all ready ones, or if
// there is none those that are draining.
func Of(list []*discoveryv1.EndpointSlice, port *corev1.ServicePort, near Nearby, allowed Allowed) []netip.AddrPort {
	for _, try := range []struct {
		readiness Readiness
		near      Nearby
	}{{Ready, near}, {Ready, Nearby{}}, {Draining, Nearby{}}} {
		if endpoints := collect(list, port, try.readiness, try.near, allowed); len(endpoints) > 0 {
			return endpoints
		}
	}
	return nil
}

// maxTerminating is how many terminating endpoints a backend has, or as many as others. Each
// makes it dearer to find a key for a new session.
const maxTerminating = 50

// Terminating are the endpoints of a Service's port that are draining and allowed, in any
// zone, sorted and without duplicates: those that are not among the ones that Of returned,
// at most maxTerminating or as many as those, and nil if it returned none.
func Terminating(list []*discoveryv1.EndpointSlice, port *corev1.ServicePort, of []netip.AddrPort, allowed Allowed) []netip.AddrPort {
	if len(of) == 0 {
		return nil
	}
	others := slices.DeleteFunc(collect(list, port, Draining, Nearby{}, allowed), func(a netip.AddrPort) bool {
		_, found := slices.BinarySearchFunc(of, a, netip.AddrPort.Compare)
		return found
	})
	return others[:min(len(others), max(maxTerminating, len(of)))]
}

func collect(list []*discoveryv1.EndpointSlice, port *corev1.ServicePort, readiness Readiness, near Nearby, allowed Allowed) []netip.AddrPort {
	var endpoints []netip.AddrPort
	for _, slice := range list {
		endpoints = appendEndpoints(endpoints, slice, port, readiness, near)
	}
	endpoints = slices.DeleteFunc(endpoints, func(a netip.AddrPort) bool { return !allowed(a) })
	slices.SortFunc(endpoints, netip.AddrPort.Compare)
	return slices.Compact(endpoints)
}

// Refused are the addresses of a Service's port that are not allowed, with their
// slices.
func Refused(list []*discoveryv1.EndpointSlice, port *corev1.ServicePort, allowed Allowed) (slice string, refused []netip.AddrPort) {
	for _, s := range list {
		var all []netip.AddrPort
		for _, r := range []Readiness{Ready, Draining, NotReady} {
			all = appendEndpoints(all, s, port, r, Nearby{})
		}
		for _, a := range all {
			if !allowed(a) {
				slice, refused = cmp.Or(slice, s.Name), append(refused, a)
			}
		}
	}
	slices.SortFunc(refused, netip.AddrPort.Compare)
	return slice, slices.Compact(refused)
}

func appendEndpoints(list []netip.AddrPort, slice *discoveryv1.EndpointSlice, port *corev1.ServicePort, want Readiness, near Nearby) []netip.AddrPort {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return list
	}
	ports, hinted := slicePorts(slice, port), near.counts(slice)
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		if ReadinessOf(endpoint) != want || hinted && !near.has(endpoint) {
			continue
		}
		for _, text := range endpoint.Addresses {
			address, err := netip.ParseAddr(text)
			if err != nil || address.Zone() != "" {
				continue
			}
			for _, p := range ports {
				list = append(list, netip.AddrPortFrom(address.Unmap(), p))
			}
		}
	}
	return list
}

// slicePorts are the numbers of the slice's ports that belong to a Service's
// port: those of the same name, or all if the Service's port has none. Where
// the slice names no port, as in slices made by hand, it is the number of the
// target port.
func slicePorts(slice *discoveryv1.EndpointSlice, port *corev1.ServicePort) []uint16 {
	var numbers []uint16
	named := false
	for _, p := range slice.Ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		named = named || name != ""
		if p.Protocol != nil && !sameProtocol(*p.Protocol, port.Protocol) || p.Port == nil || !IsPort(*p.Port) {
			continue
		}
		if port.Name == "" || port.Name == name {
			numbers = append(numbers, uint16(*p.Port))
		}
	}
	if len(numbers) > 0 || named || port.TargetPort.Type != intstr.Int {
		return numbers
	}
	target := port.TargetPort.IntVal
	if target == 0 { // the API server fills it in, files may leave it out
		target = port.Port
	}
	if !IsPort(target) {
		return nil
	}
	return []uint16{uint16(target)}
}

// A Nearness says how a Service wants requests to stay in the zone that they
// came from.
type Nearness int

const (
	// Anywhere is what Services want that say nothing.
	Anywhere Nearness = iota
	// Hinted wants endpoints that are hinted for the zone, as far as hints are
	// complete.
	Hinted
	// Preferred is Hinted, but does without a slice's hints if none of them is
	// for the zone.
	Preferred
)

// NearnessOf is what a Service wants.
func NearnessOf(service *corev1.Service) Nearness {
	if strings.EqualFold(service.Annotations[corev1.AnnotationTopologyMode], "auto") {
		return Hinted
	}
	if d := service.Spec.TrafficDistribution; d != nil {
		switch *d {
		case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
			corev1.ServiceTrafficDistributionPreferSameNode:
			return Preferred
		}
	}
	return Anywhere
}

// A Nearby picks the endpoints that are hinted for a zone.
type Nearby struct {
	Zone string
	Want Nearness
}

// counts reports whether a slice's hints count: only if all its endpoints have
// some. ingress-nginx looks at each slice by itself.
func (n Nearby) counts(slice *discoveryv1.EndpointSlice) bool {
	if n.Want == Anywhere || n.Zone == "" {
		return false
	}
	forZone := false
	for i := range slice.Endpoints {
		hints := slice.Endpoints[i].Hints
		if hints == nil || len(hints.ForZones) == 0 {
			return false
		}
		forZone = forZone || n.has(&slice.Endpoints[i])
	}
	return forZone || n.Want == Hinted
}

func (n Nearby) has(endpoint *discoveryv1.Endpoint) bool {
	return endpoint.Hints != nil &&
		slices.ContainsFunc(endpoint.Hints.ForZones, func(z discoveryv1.ForZone) bool { return z.Name == n.Zone })
}
