package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/servername"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A HostTrace is how a host came about: what model.Host has no room for, since
// requests are answered without it.
type HostTrace struct {
	// Routes are in the order of model.Host.Routes.
	Routes []RuleTrace
	// Lost are the rules that are not served.
	Lost []LostRule
	// Patterns say what makes the host's paths regular expressions, the oldest
	// Ingress first; empty where they are none.
	Patterns []PatternCause
	// Host are the settings of the whole host, from the Ingresses that decide.
	Host []feature.Reading
}

// A RuleTrace is where a route was written and what was read for it.
type RuleTrace struct {
	// Ingress is nil for the route that no Ingress asked for.
	Ingress *networkingv1.Ingress
	// Field is what of the Ingress asks for the route, empty for "/" where none
	// of the rules has it.
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
	// Alternatives are in the order of the policies' lists of model.Canary.
	Alternatives []AlternativeTrace
}

// An AlternativeTrace is where an alternative to a route's backend was written.
type AlternativeTrace struct {
	// Feature is the one whose policy has the alternative.
	Feature string
	Ingress *networkingv1.Ingress
	Field   string
}

// A LostRule is one that is not served.
type LostRule struct {
	RuleTrace
	// Backend is the key of the backend that it names, empty if it names none.
	Backend string
	// Winner is the Ingress that has the same path, nil if something else is
	// the matter.
	Winner *networkingv1.Ingress
	// Why says what is wrong.
	Why string
}

// A PatternCause is a setting of an Ingress by which a host's paths are
// regular expressions.
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
func (b *Builder) traceSettings(p *feature.Parsed, problems []feature.Problem) []feature.Reading {
	problems = append(p.Problems(), problems...)
	list := append(b.settings.Schema.Readings(p.Written(), feature.ScopeRoute, problems), b.settings.Schema.Readings(p.Written(), feature.ScopeName, problems)...)
	return slices.DeleteFunc(list, func(r feature.Reading) bool {
		i, ok := b.order[r.Feature]
		return ok && b.features[i].Canary != nil
	})
}

func traceRule(p *contribution, field string, where routeKey) *RuleTrace {
	trace := &RuleTrace{Field: field, Kind: where.kind, Path: where.path, Slash: where.slash, Written: where.written()}
	if p != nil {
		trace.Ingress = p.Ingress
	}
	return trace
}

// complete fills in the trace of a host whose routes are in their order.
func (l *hostBuilder) complete(trace *HostTrace, contributions []*contribution) {
	served := map[*networkingv1.Ingress]map[string]*RuleTrace{}
	byKey := map[routeKey]*networkingv1.Ingress{}
	trace.Routes = make([]RuleTrace, len(l.routes))
	for i, r := range l.routes {
		trace.Routes[i] = *r.trace
		if r.trace.Ingress == nil {
			continue
		}
		if served[r.trace.Ingress] == nil {
			served[r.trace.Ingress] = map[string]*RuleTrace{}
		}
		served[r.trace.Ingress][r.trace.Field] = &trace.Routes[i]
		byKey[r.where] = r.trace.Ingress
	}
	for _, p := range contributions {
		for field, path := range p.paths() {
			if rule := served[p.Ingress][field]; rule != nil {
				rule.PathType = pathType(path)
				continue
			}
			trace.Lost = append(trace.Lost, l.lostRule(p, field, path, byKey))
		}
		if len(p.Spec.Rules) == 0 && served[p.Ingress] == nil {
			trace.Lost = append(trace.Lost, l.lostCatchAll(p, byKey))
		}
	}
	if l.patterns {
		trace.Patterns = l.patternCauses(contributions)
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
				if !yield(pathField(i, j), &http.Paths[j]) {
					return
				}
			}
		}
	}
}

func pathField(rule, path int) string {
	return fmt.Sprintf("spec.rules[%d].http.paths[%d]", rule, path)
}

func pathType(path *networkingv1.HTTPIngressPath) string {
	if path.PathType == nil {
		return string(networkingv1.PathTypePrefix)
	}
	return feature.Shorten(string(*path.PathType))
}

func (l *hostBuilder) lostRule(p *contribution, field string, path *networkingv1.HTTPIngressPath, byKey map[routeKey]*networkingv1.Ingress) LostRule {
	lost := LostRule{RuleTrace: RuleTrace{
		Ingress: p.Ingress, Field: field, PathType: pathType(path), Written: feature.Shorten(cmp.Or(path.Path, "/")),
	}}
	if ref, refused := spec.ReadBackend(p.Namespace, &path.Backend); refused == nil {
		lost.Backend = ref.Key
	}
	lost.Why = l.why(p, field)
	if where, ok := routeKeyOf(path); ok && strings.HasPrefix(where.path, "/") {
		lost.Kind, lost.Path, lost.Slash = where.kind, where.path, where.slash
		if lost.Backend != "" {
			lost.Winner = byKey[where]
		}
	}
	return lost
}

// lostCatchAll is a spec.defaultBackend that another one goes before.
func (l *hostBuilder) lostCatchAll(p *contribution, byKey map[routeKey]*networkingv1.Ingress) LostRule {
	const field = "spec.defaultBackend"
	lost := LostRule{
		RuleTrace: RuleTrace{Ingress: p.Ingress, Field: field, Kind: root.kind, Path: root.path, Written: root.path},
		Why:       l.why(p, field),
	}
	if p.Spec.DefaultBackend != nil {
		if ref, refused := spec.ReadBackend(p.Namespace, p.Spec.DefaultBackend); refused == nil {
			lost.Backend, lost.Winner = ref.Key, byKey[root]
		}
	}
	return lost
}

// why is the reason for which a field is not served.
func (l *hostBuilder) why(p *contribution, field string) string {
	return l.reasons[[2]string{spec.ObjectName(p.Ingress), field}]
}

// patternCauses are found again, since a hostBuilder stops at the first one.
func (l *hostBuilder) patternCauses(contributions []*contribution) []PatternCause {
	var causes []PatternCause
	for _, p := range contributions {
		written := []string{}
		for _, path := range p.paths() {
			written = append(written, cmp.Or(path.Path, "/"))
		}
		if len(written) == 0 {
			written = []string{"/"}
		}
		for _, path := range written {
			by := l.isPattern(p, path)
			if by == nil {
				continue
			}
			cause := PatternCause{Ingress: p.Ingress, Path: path, Reading: l.builder.settings.Schema.Reading(p.Values(), by)}
			causes = append(causes, cause)
			break
		}
	}
	return causes
}

// TraceName builds a name as Name does, and says whose it is.
func (b *Builder) TraceName(name string, v View) (n model.Name, trace servername.Trace, found bool, fs []finding.Finding) {
	return b.names.Trace(name, v)
}

// TraceAliases are the aliases for more than one name that stand for this one,
// and whose each is.
func (b *Builder) TraceAliases(name string, v View) []servername.AliasTrace {
	return b.names.TraceAliases(name, v)
}
