package build

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// TraceHost builds a host as Host does, and says how it came about.
func (b *Builder) TraceHost(name string, v View) (h model.Host, trace routing.HostTrace, found bool, fs []finding.Finding) {
	return b.routes.TraceHost(name, v)
}

// TraceProcess are the settings by keys of the NGINX process and of every request.
func (b *Builder) TraceProcess(v View) []feature.Reading {
	return b.settings.Schema.Readings(b.settings.Options(v).Config.Values(), feature.ScopeProcess, nil)
}

// A BackendTrace is how a backend came to its endpoints.
type BackendTrace struct {
	// Service is nil if it does not exist.
	Service *corev1.Service
	// Port is the Service's port that the backend means, nil for none.
	Port *corev1.ServicePort
	// Endpoints are all addresses of the Service's slices.
	Endpoints []endpoint.Trace
	// ExternalName is the DNS name that the Service stands for, Addresses what
	// is known of it, nil if it was not looked up.
	ExternalName string
	Addresses    *source.Addresses
	// Owner is the oldest Ingress that uses the backend, nil if none does, and
	// Settings are those that count.
	Owner    *networkingv1.Ingress
	Settings []feature.Reading
}

// TraceBackend builds a backend as Backend does, and says how it came about.
func (b *Builder) TraceBackend(key string, v View) (be model.Backend, trace BackendTrace, found bool, fs []finding.Finding) {
	be, found, fs = b.Backend(key, v)
	name, portText, ok := spec.SplitKey(key)
	if !found || !ok {
		return be, trace, found, fs
	}
	for _, ing := range spec.OldestFirst(v.Users(key)) {
		if trace.Owner == nil && !b.settings.Read(ing, v).Forbidden() {
			trace.Owner = ing
		}
	}
	merged, _ := b.routes.MergeBackend(key, v)
	trace.Settings = b.settings.Schema.Readings(merged.Values, feature.ScopeBackend, merged.Problems)
	trace.Service = v.Service(name)
	switch {
	case name.Namespace == model.NoNamespace:
		if endpoint.CheckName(name.Name) == "" {
			trace.ExternalName, trace.Addresses = name.Name, v.Addresses(name.Name)
		}
	case trace.Service == nil:
	case trace.Service.Spec.Type == corev1.ServiceTypeExternalName:
		trace.ExternalName, _ = endpoint.ExternalName(trace.Service)
		trace.Addresses = v.Addresses(trace.ExternalName)
	default:
		trace.Port = endpoint.FindPort(trace.Service, portText)
		near := endpoint.Nearby{Zone: v.Zone(), Want: endpoint.NearnessOf(trace.Service)}
		trace.Endpoints = endpoint.Traces(be, v.EndpointSlices(name), trace.Port, near, allowed(v))
	}
	return be, trace, found, fs
}
