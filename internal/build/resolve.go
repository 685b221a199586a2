package build

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
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
	for _, f := range l.builder.features {
		if f.Host == nil {
			continue
		}
		out.TLS, out.Policy = nil, nil
		if f.Host(merged.Values, &out); out.Policy != nil {
			l.addToAll(model.Policy{Feature: f.Name, Value: out.Policy})
		}
		if out.TLS != nil {
			h.TLS = append(h.TLS, model.Policy{Feature: f.Name, Value: out.TLS})
		}
	}
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

// balancing is what the Ingresses that use a backend say of it. Denied is set if
// it is not to be asked.
func (b *Builder) balancing(key string, v View) (balancing model.Balancing, denied bool, fs []finding.Finding) {
	merged, fs := b.mergeBackend(key, v)
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

func (b *Builder) mergeBackend(key string, v View) (feature.Merged, []finding.Finding) {
	var owners []*feature.Parsed
	users := v.Users(key)
	if slices.ContainsFunc(users, func(ing *networkingv1.Ingress) bool { return v.References(ing).SaysOfBackends }) {
		for _, ing := range spec.OldestFirst(users) {
			owners = append(owners, b.settings.Read(ing, v))
		}
	}
	return b.settings.Resolve(feature.ScopeBackend, "backend "+key, owners, b.settings.Options(v).Config)
}
