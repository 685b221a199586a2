package endpoint

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

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
