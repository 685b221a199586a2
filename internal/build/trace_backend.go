package build

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// A BackendTrace is how a backend came to its endpoints.
type BackendTrace struct {
	// Service is nil if it does not exist.
	Service *corev1.Service
	// Port is the Service's port that the backend means, nil if there is none
	// or it needs none.
	Port *corev1.ServicePort
	// Endpoints are all addresses of the Service's slices, also those that are
	// not asked.
	Endpoints []EndpointTrace
	// ExternalName is the DNS name that the Service stands for, Addresses what
	// is known of it, nil if it was not looked up.
	ExternalName string
	Addresses    *source.Addresses
	// Owner is the oldest Ingress that uses the backend, nil if none does, and
	// Settings are those that count.
	Owner    *networkingv1.Ingress
	Settings []feature.Reading
}

// An EndpointTrace is one address of a slice.
type EndpointTrace struct {
	// Address is as the slice has it, with a port if one fits.
	Address   string
	Slice     string
	Readiness Readiness
	// Asked tells whether requests are sent there. Otherwise Why says why not.
	Asked bool
	Why   string
}

// TraceBackend builds a backend as Backend does, and says how it came to its
// endpoints.
func (b *Builder) TraceBackend(key string, v View) (be model.Backend, trace BackendTrace, found bool, fs []finding.Finding) {
	be, found, fs = b.Backend(key, v)
	name, portText, ok := SplitKey(key)
	if !found || !ok {
		return be, trace, found, fs
	}
	for _, ing := range OldestFirst(v.Users(key)) {
		if trace.Owner == nil && !b.read(ing, v).Forbidden() {
			trace.Owner = ing
		}
	}
	merged, _ := b.mergeBackend(key, v)
	trace.Settings = b.schema.Readings(merged.Values, feature.ScopeBackend, merged.Problems)
	trace.Service = v.Service(name)
	switch {
	case name.Namespace == model.NoNamespace:
		if outside, ok := OutsideName(name.Name); ok {
			trace.ExternalName, trace.Addresses = outside, v.Addresses(outside)
		}
	case trace.Service == nil:
	case trace.Service.Spec.Type == corev1.ServiceTypeExternalName:
		trace.ExternalName, _ = ExternalName(trace.Service)
		trace.Addresses = v.Addresses(trace.ExternalName)
	default:
		trace.Port = findPort(trace.Service, portText)
		trace.Endpoints = traceEndpoints(be, trace, v)
	}
	return be, trace, found, fs
}

func traceEndpoints(be model.Backend, trace BackendTrace, v View) []EndpointTrace {
	var list []EndpointTrace
	t := endpointTracer{backend: be, near: nearby{v.Zone(), NearnessOf(trace.Service)}}
	name := types.NamespacedName{Namespace: trace.Service.Namespace, Name: trace.Service.Name}
	for _, t.slice = range v.EndpointSlices(name) {
		t.ports = nil
		if trace.Port != nil {
			t.ports = slicePorts(t.slice, trace.Port)
		}
		for i := range t.slice.Endpoints {
			for _, address := range t.slice.Endpoints[i].Addresses {
				list = append(list, t.trace(&t.slice.Endpoints[i], address)...)
			}
		}
	}
	slices.SortFunc(list, func(a, b EndpointTrace) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Readiness, b.Readiness))
	})
	return list
}

// An endpointTracer looks at the endpoints of one slice.
type endpointTracer struct {
	backend model.Backend
	near    nearby
	slice   *discoveryv1.EndpointSlice
	ports   []uint16 // of the slice, that belong to the backend's
}

// trace gives an address with each of the ports.
func (t endpointTracer) trace(endpoint *discoveryv1.Endpoint, address string) []EndpointTrace {
	found := EndpointTrace{Address: feature.Shorten(address), Slice: t.slice.Name, Readiness: ReadinessOf(endpoint)}
	parsed, err := netip.ParseAddr(address)
	switch {
	case t.slice.AddressType == discoveryv1.AddressTypeFQDN, err != nil, parsed.Zone() != "":
		found.Why = "it is no IP address"
	case len(t.ports) == 0:
		found.Why = "its slice lacks the port"
	}
	if found.Why != "" {
		return []EndpointTrace{found}
	}
	var list []EndpointTrace
	for _, port := range t.ports {
		at := netip.AddrPortFrom(parsed.Unmap(), port)
		found.Address = at.String()
		found.Asked = found.Readiness != NotReady && slices.Contains(t.backend.Endpoints, at)
		found.Why = ""
		if !found.Asked {
			found.Why = t.whyNot(endpoint, found.Readiness)
		}
		list = append(list, found)
	}
	return list
}

func (t endpointTracer) whyNot(endpoint *discoveryv1.Endpoint, readiness Readiness) string {
	switch {
	case t.backend.ServiceAddress:
		return "the Service's own address is asked"
	case readiness == NotReady:
		return "it is not ready"
	case readiness == Draining:
		return "it is about to end, and others are ready"
	case t.near.counts(t.slice) && !t.near.has(endpoint):
		return "it is hinted for another zone"
	}
	return "it is not among those nearby"
}
