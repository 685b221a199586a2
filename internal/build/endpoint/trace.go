package endpoint

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A Trace is one address of a slice.
type Trace struct {
	// Address is as the slice has it, with a port if one fits.
	Address   string
	Slice     string
	Readiness Readiness
	// Asked is set where requests are sent there. Otherwise Why says why not. It is also
	// set for an endpoint that is asked though its health check fails.
	Asked bool
	Why   string
}

// Traces are all addresses of a Service's slices. Port is the backend's, nil for none.
func Traces(backend model.Backend, list []*discoveryv1.EndpointSlice, port *corev1.ServicePort, near Nearby, allowed Allowed) []Trace {
	var traces []Trace
	t := tracer{backend: backend, near: near, allowed: allowed}
	for _, t.slice = range list {
		t.ports = nil
		if port != nil {
			t.ports = slicePorts(t.slice, port)
		}
		for i := range t.slice.Endpoints {
			for _, address := range t.slice.Endpoints[i].Addresses {
				traces = append(traces, t.trace(&t.slice.Endpoints[i], address)...)
			}
		}
	}
	slices.SortFunc(traces, func(a, b Trace) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Readiness, b.Readiness))
	})
	return traces
}

type tracer struct {
	backend model.Backend
	near    Nearby
	allowed Allowed
	slice   *discoveryv1.EndpointSlice
	ports   []uint16 // of the slice, that belong to the backend's
}

func (t tracer) trace(endpoint *discoveryv1.Endpoint, address string) []Trace {
	found := Trace{Address: finding.Shorten(address), Slice: t.slice.Name, Readiness: ReadinessOf(endpoint)}
	parsed, err := netip.ParseAddr(address)
	switch {
	case t.slice.AddressType == discoveryv1.AddressTypeFQDN, err != nil, parsed.Zone() != "":
		found.Why = "it is not an IP address"
	case len(t.ports) == 0:
		found.Why = "its EndpointSlice does not have the port"
	}
	if found.Why != "" {
		return []Trace{found}
	}
	var list []Trace
	for _, port := range t.ports {
		at := netip.AddrPortFrom(parsed.Unmap(), port)
		found.Address = at.String()
		found.Asked = found.Readiness != NotReady && slices.Contains(t.backend.Endpoints, at)
		if found.Why = t.unhealthy(at); !found.Asked {
			found.Why = t.whyNot(endpoint, at, found.Readiness)
		}
		list = append(list, found)
	}
	return list
}

func (t tracer) whyNot(endpoint *discoveryv1.Endpoint, at netip.AddrPort, readiness Readiness) string {
	switch {
	case t.backend.ServiceAddress:
		return "the cluster IP of the Service is used instead"
	case !t.allowed(at):
		return "it is an address of this machine, of a metadata service or of Headgate itself"
	case readiness == NotReady:
		return "it is not ready"
	case readiness == Draining && slices.Contains(t.backend.Terminating, at):
		return "it is terminating: only its sessions stay there"
	case readiness == Draining:
		return "it is terminating, and other endpoints are ready"
	case t.unhealthy(at) != "":
		return t.unhealthy(at)
	case t.near.counts(t.slice) && !t.near.has(endpoint):
		return "its topology hint is for another zone"
	}
	return "endpoints in Headgate's zone are used instead"
}

// unhealthy is why an endpoint is unhealthy, empty if it is not.
func (t tracer) unhealthy(at netip.AddrPort) string {
	for _, u := range t.backend.Health.Unhealthy {
		if u.Address == at {
			return "it is unhealthy: " + u.Why
		}
	}
	return ""
}
