package routing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
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
