package routing

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
)

// addHostSettings writes what the Ingresses say of the whole host: h gets what they say
// of its TLS handshakes.
func (l *hostBuilder) addHostSettings(h *model.Host) {
	owners := make([]*feature.Parsed, len(l.contributions))
	for i, p := range l.contributions {
		// As in ingress-nginx an Ingress without a route does not count. Its access
		// control does.
		if owners[i] = p.Parsed; !p.routed {
			owners[i] = p.Idle()
		}
	}
	unit := "host " + l.host
	merged, fs := l.builder.settings.Resolve(feature.ScopeHost, unit, owners, l.config)
	out := feature.HostOut{Report: feature.NewReport(merged.Values, setting.DeniesAll(unit))}
	out.Patterns = l.patterns
	out.Guards = l.guarding
	for i := range l.routes {
		out.Routes = append(out.Routes, &l.routes[i].Route)
	}
	l.applyToHost(merged.Values, &out, h)
	h.Passthrough = l.passthrough(merged.Denied || out.Denied, &out)
	l.findings = append(append(l.findings, fs...), setting.Findings("", out.Problems)...)
	for i := range l.routes {
		l.routes[i].Denied = l.routes[i].Denied || merged.Denied || out.Denied
	}
	if l.trace != nil {
		l.trace.Host = l.builder.settings.Schema.Readings(merged.Values, feature.ScopeHost, slices.Concat(merged.Problems, out.Problems))
	}
	h.Contents = out.Contents
}

// guarding are the features that may refuse clients on one of the routes.
func (l *hostBuilder) guarding() (names []string) {
	for _, f := range l.builder.features {
		if isGuard(f) && slices.ContainsFunc(l.routes, func(r routeCandidate) bool {
			return slices.ContainsFunc(r.Policies, func(p model.Policy) bool { return p.Feature == f.Name })
		}) {
			names = append(names, f.Name)
		}
	}
	return names
}

// isGuard reports whether a feature may refuse clients.
func isGuard(f feature.Feature) bool {
	return f.Predict[prediction.AuthPhase] != nil || f.Predict[prediction.LimitPhase] != nil
}

// applyToHost lets the features write into a host and all of its routes.
func (l *hostBuilder) applyToHost(v feature.Values, out *feature.HostOut, h *model.Host) {
	before := false
	for _, f := range l.builder.features {
		if f.Host == nil {
			continue
		}
		out.TLS, out.Policy, out.Server = nil, nil, nil
		f.Host(v, out)
		if out.Policy != nil {
			policy := model.Policy{Feature: f.Name, Value: out.Policy}
			l.addToAll(policy)
			h.Server = append(h.Server, policy)
		}
		if out.TLS != nil {
			h.TLS = append(h.TLS, model.Policy{Feature: f.Name, Value: out.TLS})
		}
		if out.Server != nil {
			h.Server = append(h.Server, model.Policy{Feature: f.Name, Value: out.Server})
			before = true
		}
	}
	if !before {
		h.Server = nil
	}
}

// addToAll gives all routes a policy, in the order of the feature list and before
// what the same feature does on the route alone.
func (l *hostBuilder) addToAll(policy model.Policy) {
	order := l.builder.order
	for i := range l.routes {
		route := &l.routes[i].Route
		at, _ := slices.BinarySearchFunc(route.Policies, policy, func(x, y model.Policy) int {
			return cmp.Compare(order[x.Feature], order[y.Feature])
		})
		route.Policies = slices.Insert(slices.Clip(route.Policies), at, policy)
	}
}

// Balancing is what the Ingresses that use a backend say of it. Denied is set if
// it is not to be asked.
func (b *Builder) Balancing(key string, v View) (balancing model.Balancing, denied bool, fs []finding.Finding) {
	merged, fs := b.MergeBackend(key, v)
	// The route that a canary belongs to may have a backend with sessions.
	balancing.Sessions = slices.ContainsFunc(v.Users(key), func(ing *networkingv1.Ingress) bool { return v.References(ing).IsCanary })
	out := feature.BackendOut{Report: feature.NewReport(merged.Values, setting.DeniesAll("backend "+key)), Balancing: &balancing}
	for _, f := range b.features {
		if f.Backend != nil {
			f.Backend(merged.Values, &out)
		}
	}
	return balancing, merged.Denied || out.Denied, append(fs, setting.Findings("", out.Problems)...)
}

// MergeBackend merges the settings that the Ingresses which use a backend have of it.
func (b *Builder) MergeBackend(key string, v View) (feature.Merged, []finding.Finding) {
	var owners []*feature.Parsed
	users := v.Users(key)
	if slices.ContainsFunc(users, func(ing *networkingv1.Ingress) bool { return v.References(ing).SaysOfBackends }) {
		for _, ing := range spec.OldestFirst(users) {
			owners = append(owners, b.settings.Read(ing, v))
		}
	}
	return b.settings.Resolve(feature.ScopeBackend, "backend "+key, owners, b.settings.Options(v).Config)
}
