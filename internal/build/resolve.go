package build

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/memo"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

const (
	// maxParsed is how many Ingresses' annotations are remembered.
	maxParsed = 10_000
	// fewBytes of annotations are parsed again for each of few hosts.
	fewBytes = 256
)

// A parsedMemo remembers what annotations say, since an Ingress may have
// thousands of hosts, and regular expressions take long to compile. Objects are
// not part of it: they change by themselves.
type parsedMemo struct {
	config *feature.Config
	of     map[types.NamespacedName]memo.Of[*networkingv1.Ingress, *feature.Parsed]
}

// parse reads the annotations of an Ingress.
func (b *Builder) parse(ing *networkingv1.Ingress, config *feature.Config) *feature.Parsed {
	parse := func(ing *networkingv1.Ingress) *feature.Parsed {
		return b.schema.Parse(spec.Origin(ing), ing.Annotations, config)
	}
	bytes := 0
	for _, text := range ing.Annotations {
		bytes += len(text)
	}
	if len(ing.Spec.Rules) <= spec.FewRules && bytes <= fewBytes {
		return parse(ing)
	}
	if b.parsed.config != config || len(b.parsed.of) > maxParsed {
		b.parsed = parsedMemo{config, map[types.NamespacedName]memo.Of[*networkingv1.Ingress, *feature.Parsed]{}}
	}
	name := types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
	known := b.parsed.of[name]
	parsed := known.Get(ing, parse)
	b.parsed.of[name] = known
	return parsed
}

// read does so with the objects that the annotations refer to.
func (b *Builder) read(ing *networkingv1.Ingress, v View) *feature.Parsed {
	return b.parse(ing, b.settings(v).config).Attach(feature.Objects{
		Secret: func(name feature.ObjectName) (map[string][]byte, bool) {
			secret := v.Secret(types.NamespacedName(name))
			return dataOf(secret, func(s *corev1.Secret) map[string][]byte { return s.Data })
		},
		ConfigMap: func(name feature.ObjectName) (map[string]string, bool) {
			configMap := v.NamedConfigMap(types.NamespacedName(name))
			return dataOf(configMap, func(c *corev1.ConfigMap) map[string]string { return c.Data })
		},
		Derive: func(secret feature.ObjectName, key string, make func() any) any {
			of := derivation{v.Secret(types.NamespacedName(secret)), key}
			return b.derived.Get(of, func(derivation) any { return make() })
		},
	})
}

// dataOf is the data of an object, not nil if there is the object.
func dataOf[O, V any](object *O, data func(*O) map[string]V) (map[string]V, bool) {
	if object == nil {
		return nil, false
	}
	if found := data(object); found != nil {
		return found, true
	}
	return map[string]V{}, true
}

// resolve merges what the Ingresses that share a host or a backend, the oldest
// first, say of it. It is the only place where an Ingress decides over what is not
// its own. Unit names the host or backend in findings.
func (b *Builder) resolve(scope feature.Scope, unit string, owners []*feature.Parsed, config *feature.Config) (feature.Merged, []finding.Finding) {
	m := b.schema.Merge(scope, config, owners, deniesAll(unit))
	fs := problemFindings("", m.Problems)
	for _, c := range m.Conflicts {
		fs = append(fs, finding.Finding{
			Object: spec.OriginName(c.Loser), Field: c.Field, Code: finding.Conflict,
			Message: fmt.Sprintf("%s, which is older, decides for %s", spec.OriginName(c.Winner), unit),
			Effect:  "this annotation does nothing for that " + scope.String(),
		})
	}
	return m, fs
}

func deniesAll(unit string) string { return "all requests for " + unit + " are answered 503" }

// addHostSettings writes what the Ingresses say of the whole host, and returns
// what they say of its TLS connections.
func (l *layout) addHostSettings() model.TLSPolicy {
	owners := make([]*feature.Parsed, len(l.parts))
	for i, p := range l.parts {
		// As in ingress-nginx an Ingress without a route does not count. Its access
		// control does.
		if owners[i] = p.Parsed; !p.routed {
			owners[i] = p.Idle()
		}
	}
	unit := "host " + l.host
	merged, fs := l.builder.resolve(feature.ScopeHost, unit, owners, l.config)
	out := feature.HostOut{Report: feature.NewReport(merged.Values, deniesAll(unit)), TLS: &model.TLSPolicy{}}
	for _, f := range l.builder.features {
		if f.Host == nil {
			continue
		}
		out.Policy = nil
		if f.Host(merged.Values, &out); out.Policy != nil {
			l.addToAll(model.Policy{Feature: f.Name, Value: out.Policy})
		}
	}
	l.findings = append(append(l.findings, fs...), problemFindings("", out.Problems)...)
	for i := range l.routes {
		l.routes[i].Denied = l.routes[i].Denied || merged.Denied || out.Denied
	}
	if l.trace != nil {
		l.trace.Host = l.builder.schema.Readings(merged.Values, feature.ScopeHost, slices.Concat(merged.Problems, out.Problems))
	}
	return *out.TLS
}

// addToAll gives all routes a policy, in the order of the feature list and before
// what the same feature does on the route alone.
func (l *layout) addToAll(policy model.Policy) {
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
	out := feature.BackendOut{Report: feature.NewReport(merged.Values, deniesAll("backend "+key)), Balancing: &balancing}
	for _, f := range b.features {
		if f.Backend != nil {
			f.Backend(merged.Values, &out)
		}
	}
	return balancing, merged.Denied || out.Denied, append(fs, problemFindings("", out.Problems)...)
}

func (b *Builder) mergeBackend(key string, v View) (feature.Merged, []finding.Finding) {
	var owners []*feature.Parsed
	users := v.Users(key)
	if slices.ContainsFunc(users, func(ing *networkingv1.Ingress) bool { return v.References(ing).SaysOfBackends }) {
		for _, ing := range spec.OldestFirst(users) {
			owners = append(owners, b.read(ing, v))
		}
	}
	return b.resolve(feature.ScopeBackend, "backend "+key, owners, b.settings(v).config)
}
