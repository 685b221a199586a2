package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// A HostTrace is how a host came about.
type HostTrace struct {
	// Routes are in the order of model.Host.Routes.
	Routes []RuleTrace
	// Lost are the rules that are not served.
	Lost []LostRule
	// Patterns say what makes the host's paths regular expressions, the oldest first.
	Patterns []PatternCause
	// Host are the settings of the whole host, from the Ingresses that decide.
	Host []feature.Reading
}

// A RuleTrace is where a route was written and what was read for it.
type RuleTrace struct {
	// Ingress is nil for the route that no Ingress asked for.
	Ingress *networkingv1.Ingress
	// Field asks for the route, empty for "/" where none of the rules has it.
	Field string
	// PathType is the one written, empty where there is no rule.
	PathType string
	// Kind, Path and Slash are the route's if the host's paths are not regular
	// expressions, as model.Route has them.
	Kind  model.PathKind
	Path  string
	Slash bool
	// Written is the path as the rule has it.
	Written string
	// Settings are those of the route's Ingress.
	Settings []feature.Reading
	// Canaries are in the order of the policies' lists of model.Canary.
	Canaries []CanaryTrace
}

// A CanaryTrace is where a canary of a route was written.
type CanaryTrace struct {
	// Feature is the one whose policy has the canary.
	Feature string
	Ingress *networkingv1.Ingress
	Field   string
}

// A LostRule is one that is not served.
type LostRule struct {
	RuleTrace
	// Backend is the key of the backend that it names, empty if it names none.
	Backend string
	// Winner is the Ingress that has the same path, nil for another reason.
	Winner *networkingv1.Ingress
	// Why says what is wrong.
	Why string
}

// A PatternCause is a setting by which a host's paths are regular expressions.
type PatternCause struct {
	Ingress *networkingv1.Ingress
	// Path is the first of the Ingress's paths that it makes one.
	Path string
	feature.Reading
}

// TraceHost builds a host as Host does, and says how it came about.
func (b *Builder) TraceHost(name string, v View) (h model.Host, trace HostTrace, found bool, fs []finding.Finding) {
	h, found, fs = b.host(name, v, &trace)
	return h, trace, found, fs
}

// TraceProcess are the settings by keys of the NGINX process and of every request.
func (b *Builder) TraceProcess(v View) []feature.Reading {
	return b.settings.Schema.Readings(b.settings.Options(v).Config.Values(), feature.ScopeProcess, nil)
}

// traceSettings are those of an Ingress that makes routes: of its routes and of
// names. Whether it is a canary is not among them.
func (b *Builder) traceSettings(p *feature.Parsed, of feature.Report) []feature.Reading {
	problems := append(p.Problems(), of.Problems...)
	list := append(b.settings.Schema.Readings(p.Written(), feature.ScopeRoute, problems), b.settings.Schema.Readings(p.Written(), feature.ScopeName, problems)...)
	for i, r := range list {
		list[i].KeyDenies = r.KeyDenies || r.Annotation == "" && slices.Contains(of.DenyingKeys, r.Key)
	}
	return slices.DeleteFunc(list, func(r feature.Reading) bool {
		i, ok := b.order[r.Feature]
		return ok && b.features[i].Canary != nil
	})
}

type place struct {
	ingress *networkingv1.Ingress
	field   string
}

// complete fills in the trace of a host whose routes are in their order.
func (l *hostBuilder) complete(trace *HostTrace) {
	served := map[place]*RuleTrace{}
	winners := map[routeKey]*networkingv1.Ingress{}
	trace.Routes = make([]RuleTrace, len(l.routes))
	for i, r := range l.routes {
		trace.Routes[i] = *r.trace
		served[place{r.trace.Ingress, r.trace.Field}] = &trace.Routes[i]
		winners[r.where] = r.trace.Ingress
	}
	for _, p := range l.contributions {
		for field, path := range p.paths() {
			if rule := served[place{p.Ingress, field}]; rule != nil {
				rule.PathType = pathType(path)
				continue
			}
			trace.Lost = append(trace.Lost, l.lostRule(p, field, path, winners))
		}
		if len(p.Spec.Rules) == 0 && !p.routed {
			var catchAll networkingv1.HTTPIngressPath
			if p.Spec.DefaultBackend != nil {
				catchAll.Backend = *p.Spec.DefaultBackend
			}
			lost := l.lostRule(p, "spec.defaultBackend", &catchAll, winners)
			lost.PathType = ""
			trace.Lost = append(trace.Lost, lost)
		}
		// A hostBuilder stops at the first one.
		if path, by := l.patternOf(p); l.patterns && by != nil {
			trace.Patterns = append(trace.Patterns, PatternCause{p.Ingress, path, l.builder.settings.Schema.Reading(p.Values(), by)})
		}
	}
}

// paths are those that the Ingress gives the host, by their fields.
func (p *contribution) paths() func(yield func(string, *networkingv1.HTTPIngressPath) bool) {
	return func(yield func(string, *networkingv1.HTTPIngressPath) bool) {
		for _, i := range p.rules {
			http := p.Spec.Rules[i].HTTP
			if http == nil {
				continue
			}
			for j := range http.Paths {
				if !yield(fmt.Sprintf("spec.rules[%d].http.paths[%d]", i, j), &http.Paths[j]) {
					return
				}
			}
		}
	}
}

func pathType(path *networkingv1.HTTPIngressPath) string {
	if path.PathType == nil {
		return string(networkingv1.PathTypePrefix)
	}
	return finding.Shorten(string(*path.PathType))
}

func (l *hostBuilder) lostRule(
	p *contribution, field string, path *networkingv1.HTTPIngressPath, winners map[routeKey]*networkingv1.Ingress,
) LostRule {
	lost := LostRule{
		RuleTrace: RuleTrace{Ingress: p.Ingress, Field: field, PathType: pathType(path), Written: finding.Shorten(cmp.Or(path.Path, "/"))},
		Why:       l.reasons[place{p.Ingress, field}],
	}
	if ref, refused := spec.ReadBackend(p.Namespace, &path.Backend); refused == nil {
		lost.Backend = ref.Key
	}
	if where, ok := routeKeyOf(path); ok && strings.HasPrefix(where.path, "/") {
		lost.Kind, lost.Path, lost.Slash = where.kind, where.path, where.slash
		if lost.Backend != "" {
			lost.Winner = winners[where]
		}
	}
	return lost
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
	merged, _ := b.mergeBackend(key, v)
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
