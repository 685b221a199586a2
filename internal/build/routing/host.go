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
	"github.com/headgate/headgate/internal/unit"
)

// Host builds one host. It is not found when no Ingress names it any more;
// model.DefaultHost always is.
//
// Of several rules for one path and kind the oldest Ingress's wins. A path
// written as Exact and as Prefix is two routes, and so are "/foo" and "/foo/"
// as Prefix: both have the Path "/foo", the second one has Slash. The router
// then gives "/foo/" and all below it to the route with Slash and "/foo"
// itself to the other, regardless of their age; there is no redirect between them.
// (ingress-nginx writes one location twice, and NGINX refuses them.)
//
// If one path is a pattern, all are, see patterned.
//
// Every host has a route for "/" and all below it.
//
// Of more than model.MaxHostRoutes paths, or model.MaxHostBytes of paths and settings, the
// oldest Ingresses' are served. What does not fit is denied, see denyLeftOut.
func (b *Builder) Host(name string, v View) (h model.Host, found bool, fs []finding.Finding) {
	return b.host(name, v, nil)
}

// host takes down in trace, if that is not nil, how the host came about.
func (b *Builder) host(name string, v View, trace *HostTrace) (h model.Host, found bool, fs []finding.Finding) {
	ingresses := spec.OldestFirst(v.Ingresses(name))
	l := hostBuilder{
		builder: b, view: v, config: b.settings.Options(v).Config, fallback: DefaultKey(v), host: name,
		taken: map[routeKey]string{}, compiled: map[string]expression{}, trace: trace, reasons: map[place]string{},
	}
	canaries := l.contributionsOf(spec.OldestFirst(v.Canaries(name)))
	l.addStrangers()
	if len(ingresses) == 0 && name != model.DefaultHost {
		l.addCanaries(canaries)
		return model.Host{}, false, finding.Limit(l.findings)
	}
	contributions := l.contributionsOf(ingresses)
	l.implyOfHost(contributions)
	l.contributions = contributions
	l.patterns = l.anyPatterns()
	if name == model.DefaultHost {
		l.placeCatchAlls()
	}
	l.placeRules()
	l.noteExpressions()
	l.addRoutes()
	if _, ok := l.taken[root]; !ok {
		l.addRoot(contributions)
	}
	l.denyLeftOut()
	l.addCanaries(canaries)
	h.Name = name
	if len(ingresses) > 0 {
		h.Namespace = ingresses[0].Namespace
	}
	l.addHostSettings(&h)
	if l.patterns {
		l.patterned()
	} else {
		slices.SortFunc(l.routes, func(a, b routeCandidate) int {
			return cmp.Or(cmp.Compare(a.where.kind, b.where.kind), cmp.Compare(a.where.path, b.where.path), boolCompare(a.where.slash, b.where.slash))
		})
	}
	h.Routes = make([]model.Route, len(l.routes))
	for _, p := range contributions {
		l.reportWhole(p, append(p.Problems(), p.problems...))
	}
	l.reportShared()
	for i, r := range l.routes {
		h.Routes[i] = r.Route
	}
	if trace != nil {
		l.complete(trace)
	}
	return h, true, finding.Limit(l.findings)
}

type hostBuilder struct {
	builder  *Builder
	view     View
	config   *feature.Config
	fallback string // the default backend's key, empty for the built-in one
	host     string
	patterns bool // the host's paths are regular expressions
	// compiled has the expressions of paths that are more than "^" and the path.
	compiled map[string]expression
	// expressions is how many routes are more than plain text, and
	// expressionBytes what theirs take. refusedExpressions are those that were compiled
	// in vain.
	expressions, expressionBytes, refusedExpressions int
	// contributions are those of Ingresses that make routes, and placed the rules of
	// theirs that no other rule comes before.
	contributions []*contribution
	placed        []placedRule
	answered      *answers // see answers
	routes        []routeCandidate
	size          unit.HostSize
	taken         map[routeKey]string // by which Ingress
	// foreignCanaries are those of other namespaces.
	foreignCanaries []foreignCanary
	firsts          map[firstKey]*contribution // see firstWith
	protocols       protocols
	partition       *partition // see parts
	findings        []finding.Finding
	trace           *HostTrace // nil unless there is one
	// reasons are why fields are not served, where there is a trace.
	reasons map[place]string
}

type routeCandidate struct {
	model.Route
	where routeKey
	field string // asks for it, empty if nothing does
	own   bool   // its path is a pattern by its Ingress's own doing
	// speaks is as in feature.RouteOut.
	speaks func(appProtocol string) bool
	trace  *RuleTrace // nil without a trace
}

// A routeKey is what only one rule of a host can have.
type routeKey struct {
	kind  model.PathKind
	path  string
	slash bool
}

var (
	root      = routeKey{kind: model.Prefix, path: "/"}
	exactRoot = routeKey{kind: model.Exact, path: "/"}
)

func (p routeKey) written() string {
	if p.slash {
		return p.path + "/"
	}
	return p.path
}

func (p routeKey) String() string { return p.kind.String() + " " + p.written() }

// A placedRule is one that becomes a route, or is left out since there are too many.
type placedRule struct {
	by      *contribution
	field   string
	where   routeKey
	backend string
	leftOut bool
}

// placeCatchAlls gives "/" of the default host to Ingresses that have no rules
// but a spec.defaultBackend. They come before rules without a host, however
// old those are, as in ingress-nginx.
func (l *hostBuilder) placeCatchAlls() {
	for _, p := range l.contributions {
		if len(p.Spec.Rules) == 0 {
			l.place(p, "spec.defaultBackend", root, p.Spec.DefaultBackend)
		}
	}
}

// placeRules decides which rules become routes, before any route is made: features ask
// what the host answers.
func (l *hostBuilder) placeRules() {
	for _, p := range l.contributions {
		for field, path := range p.paths() {
			where, refused := l.readPath(path)
			if refused != nil {
				l.refuse(p, field, notServed, refused)
				continue
			}
			l.place(p, field, where, &path.Backend)
		}
	}
}

// addRoutes makes routes of the rules that were placed.
func (l *hostBuilder) addRoutes() {
	for i := range l.placed {
		r := &l.placed[i]
		if r.leftOut {
			continue
		}
		l.finish(r.field, r.where, model.Route{Backend: r.backend}, r.by)
		last := len(l.routes) - 1
		if r.leftOut = !l.size.Add(l.routes[last].Route, model.MaxHostBytes); r.leftOut {
			l.routes = l.routes[:last]
		}
	}
}

const notServed = "this path is not served"

// addRoot makes the route for "/" of a host that no rule gave one: it goes to
// the spec.defaultBackend of the first Ingress or else to the default backend,
// and has that Ingress's annotations either way. For the default host, as in
// ingress-nginx, spec.defaultBackend counts only of an Ingress without rules.
func (l *hostBuilder) addRoot(contributions []*contribution) {
	route := model.Route{Backend: l.fallback, Default: l.fallback != ""}
	if len(contributions) == 0 {
		l.finish("", root, route, nil)
		return
	}
	first, field := contributions[0], ""
	switch {
	case first.Spec.DefaultBackend == nil:
	case l.host == model.DefaultHost:
		l.refuse(first, "spec.defaultBackend", "the default backend gets no requests for other names", &spec.Rejection{
			Code: finding.NotSupported, Message: "a rule without a host takes precedence over the default backend",
		})
	default:
		ref, refused := spec.ReadBackend(first.Namespace, first.Spec.DefaultBackend)
		if refused != nil {
			l.refuse(first, "spec.defaultBackend", "the default backend answers", refused)
		} else {
			route, field = model.Route{Backend: ref.Key}, "spec.defaultBackend"
		}
	}
	l.finish(field, root, route, first)
}

// DefaultKey is the key of the default backend, empty for the built-in one.
func DefaultKey(v View) string {
	name := v.DefaultBackend()
	if name.Name == "" {
		return ""
	}
	return model.BackendKey(name.Namespace, name.Name, model.FirstPort)
}

func (l *hostBuilder) place(p *contribution, field string, where routeKey, b *networkingv1.IngressBackend) {
	ref, refused := spec.ReadBackend(p.Namespace, b)
	if refused != nil {
		l.refuse(p, field+".backend", notServed, refused)
		return
	}
	if winner, ok := l.taken[where]; ok {
		message := fmt.Sprintf("%s of host %s belongs to %s", finding.Shorten(where.String()), l.host, winner)
		if winner == spec.ObjectName(p.Ingress) {
			message = fmt.Sprintf("%s of host %s is listed before in this Ingress", finding.Shorten(where.String()), l.host)
		}
		l.refuse(p, field, notServed, &spec.Rejection{Code: finding.Conflict, Message: message})
		return
	}
	if l.patterns && !isLiteral(where.written()) {
		l.expressions++
		l.expressionBytes += l.compiled[where.written()].bytes
	}
	l.taken[where] = spec.ObjectName(p.Ingress)
	l.placed = append(l.placed, placedRule{p, field, where, ref.Key, len(l.placed) >= model.MaxHostRoutes})
}

// finish lets the features write into a route and adds it. Field is what of the
// Ingress asks for the route, empty if nothing does. P is nil for the route
// that no Ingress asked for.
func (l *hostBuilder) finish(field string, where routeKey, route model.Route, p *contribution) {
	route.Kind, route.Path, route.Slash = where.kind, where.path, where.slash
	var parsed *feature.Parsed
	if p == nil {
		parsed = l.builder.settings.Schema.Parse(model.Origin{}, nil, l.config)
	} else {
		parsed, route.Origin = p.Parsed, spec.Origin(p.Ingress)
	}
	out := feature.RouteOut{Route: &route, Host: feature.Host{
		Name: l.host, DefaultBackend: l.fallback, ManyNames: spec.IsManyNames(l.host), Answers: l.answers,
		First: func(s feature.AnySetting) (feature.Values, bool) { return l.firstWith(route.Origin.Namespace, s) },
	}}
	if !route.Default {
		out.AppProtocol = l.appProtocol(route.Backend)
	}
	out = l.builder.Apply(parsed.Values(), out)
	route.Denied = out.Denied || parsed.Denied()
	if p != nil {
		p.problems, p.routed = append(p.problems, out.Problems...), true
	}
	var trace *RuleTrace
	if l.trace != nil {
		trace = &RuleTrace{Field: field, Kind: where.kind, Path: where.path, Slash: where.slash, Written: where.written()}
		if trace.Settings = l.builder.traceSettings(parsed, out.Report); p != nil {
			trace.Ingress = p.Ingress
		}
	}
	own := l.patterns && p != nil && l.isPattern(p, where.written()) != nil
	l.routes = append(l.routes, routeCandidate{route, where, field, own, out.Speaks, trace})
}

// A firstKey is a namespace and an annotation.
type firstKey struct{ namespace, annotation string }

// firstWith returns the values of the oldest Ingress in a namespace that has a setting. It
// is looked for once: many routes may ask.
func (l *hostBuilder) firstWith(namespace string, s feature.AnySetting) (feature.Values, bool) {
	key := firstKey{namespace, s.Spec().Annotation}
	first, known := l.firsts[key]
	if !known {
		i := slices.IndexFunc(l.contributions, func(c *contribution) bool { return c.Namespace == namespace && c.Uses(s) })
		if i >= 0 {
			first = l.contributions[i]
		}
		if l.firsts == nil {
			l.firsts = map[firstKey]*contribution{}
		}
		l.firsts[key] = first
	}
	if first == nil {
		return feature.Values{}, false
	}
	return first.Values(), true
}

func (l *hostBuilder) refuse(p *contribution, field, effect string, why *spec.Rejection) {
	if l.trace != nil {
		l.reasons[place{p.Ingress, strings.TrimSuffix(field, ".backend")}] = why.Message
	}
	l.findings = append(l.findings, finding.Finding{
		Object: spec.ObjectName(p.Ingress), Field: field, Code: why.Code, Message: why.Message, Effect: effect,
	})
}

// readPath is where a rule's path stands. ImplementationSpecific acts as
// Prefix. A path is taken as it is written: requests' paths are decoded before
// they are compared, rules' are not.
func (l *hostBuilder) readPath(p *networkingv1.HTTPIngressPath) (routeKey, *spec.Rejection) {
	path := cmp.Or(p.Path, "/")
	if !strings.HasPrefix(path, "/") {
		return routeKey{}, &spec.Rejection{Code: finding.InvalidValue, Message: fmt.Sprintf("path %q does not start with a slash", finding.Shorten(path))}
	}
	if l.patterns {
		if refused := l.checkPattern(path); refused != nil {
			return routeKey{}, refused
		}
	} else if neverAsked(path) {
		return routeKey{}, &spec.Rejection{Code: finding.InvalidValue, Message: fmt.Sprintf("path %q contains //, /./ or /../, which NGINX removes from the paths of requests", finding.Shorten(path))}
	}
	where, ok := routeKeyOf(p)
	if !ok {
		return routeKey{}, unknownPathType(p)
	}
	return where, nil
}

func unknownPathType(p *networkingv1.HTTPIngressPath) *spec.Rejection {
	return &spec.Rejection{Code: finding.InvalidValue, Message: fmt.Sprintf("invalid pathType %q: must be Exact, Prefix or ImplementationSpecific", finding.Shorten(string(*p.PathType)))}
}

// routeKeyOf is false for a pathType that does not exist.
func routeKeyOf(p *networkingv1.HTTPIngressPath) (where routeKey, ok bool) {
	path, kind := cmp.Or(p.Path, "/"), networkingv1.PathTypePrefix
	if p.PathType != nil {
		kind = *p.PathType
	}
	switch kind {
	case networkingv1.PathTypeExact:
		return routeKey{kind: model.Exact, path: path}, true
	case networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific:
		bare := strings.TrimSuffix(path, "/")
		if bare == "" {
			return routeKey{kind: model.Prefix, path: "/"}, true
		}
		return routeKey{kind: model.Prefix, path: bare, slash: bare != path}, true
	}
	return routeKey{}, false
}

// neverAsked reports whether no request can have the path, because requests'
// paths are cleaned before they are compared.
func neverAsked(path string) bool {
	whole := path + "/"
	return strings.Contains(path, "//") || strings.Contains(whole, "/./") || strings.Contains(whole, "/../")
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
