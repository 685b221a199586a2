package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Host builds one host. It is not found when no Ingress names it any more;
// model.DefaultHost always is.
//
// Of several rules for one path and kind the oldest Ingress's wins. A path
// written as Exact and as Prefix is two routes, and so are "/foo" and "/foo/"
// as Prefix: both have the Path "/foo", the second one has Slash. The router
// then gives "/foo/" and all below it to the route with Slash and "/foo"
// itself to the other, whichever is older; there is no redirect between them.
// (The predecessor wrote one location twice, and NGINX refused them.)
//
// If one path is a pattern, all are, see patterned.
//
// Every host has a route for "/" and all below it.
func (b *Builder) Host(name string, v View) (h model.Host, found bool, fs []finding.Finding) {
	ingresses := oldestFirst(v.Ingresses(name))
	if len(ingresses) == 0 && name != model.DefaultHost {
		return model.Host{}, false, nil
	}
	l := layout{builder: b, config: b.settings(v).config, fallback: defaultKey(v), host: name, taken: map[place]string{}, compiled: map[string]string{}}
	l.patterns = l.anyPattern(ingresses)
	if name == model.DefaultHost {
		l.addCatchAlls(ingresses)
	}
	for _, ing := range ingresses {
		l.addRules(ing)
	}
	if _, ok := l.taken[root]; !ok {
		l.addRoot(ingresses)
	}
	if l.patterns {
		l.patterned()
	} else {
		slices.SortFunc(l.routes, func(a, b placed) int {
			return cmp.Or(cmp.Compare(a.where.kind, b.where.kind), cmp.Compare(a.where.path, b.where.path), boolCompare(a.where.slash, b.where.slash))
		})
	}
	h = model.Host{Name: name, Routes: make([]model.Route, len(l.routes))}
	for i, r := range l.routes {
		h.Routes[i] = r.Route
	}
	return h, true, finding.Sort(l.findings)
}

// A layout is a host in the making.
type layout struct {
	builder  *Builder
	config   *feature.Config
	fallback string // the default backend's key, empty for the built-in one
	host     string
	patterns bool // the host's paths are regular expressions
	// compiled has the expressions of paths that are more than "^" and the path.
	compiled map[string]string
	routes   []placed
	taken    map[place]string // by which Ingress
	findings []finding.Finding
}

// A placed route is one with where it was written.
type placed struct {
	model.Route
	where place
	own   bool // its path is a pattern by its Ingress's own doing
}

// A place is what only one rule of a host can have.
type place struct {
	kind  model.PathKind
	path  string
	slash bool
}

var root = place{kind: model.Prefix, path: "/"}

// written is the path as the rule has it.
func (p place) written() string {
	if p.slash {
		return p.path + "/"
	}
	return p.path
}

func (p place) String() string { return p.kind.String() + " " + p.written() }

// addCatchAlls gives "/" of the default host to Ingresses that have no rules
// but a spec.defaultBackend. They come before rules without a host, however
// old those are, as in the predecessor.
func (l *layout) addCatchAlls(ingresses []*networkingv1.Ingress) {
	for _, ing := range ingresses {
		if len(ing.Spec.Rules) == 0 {
			l.add(ing, "spec.defaultBackend", root, ing.Spec.DefaultBackend)
		}
	}
}

func (l *layout) addRules(ing *networkingv1.Ingress) {
	l.findings = append(l.findings, l.builder.unknownAnnotations(ing)...)
	for i, rule := range ing.Spec.Rules {
		host, ok := hostName(rule.Host)
		if !ok {
			l.refuse(ing, fmt.Sprintf("spec.rules[%d].host", i), "this rule is not served",
				&refusal{finding.InvalidValue, fmt.Sprintf("%q is no DNS name", shorten(rule.Host))})
		}
		if !ok || host != l.host || rule.HTTP == nil {
			continue
		}
		for j := range rule.HTTP.Paths {
			path := &rule.HTTP.Paths[j]
			field := fmt.Sprintf("spec.rules[%d].http.paths[%d]", i, j)
			where, refused := l.readPath(path)
			if refused != nil {
				l.refuse(ing, field, notServed, refused)
				continue
			}
			l.add(ing, field, where, &path.Backend)
		}
	}
}

const notServed = "this path is not served"

// addRoot makes the route for "/" of a host that no rule gave one: it goes to
// the spec.defaultBackend of the first Ingress or else to the default backend,
// and has that Ingress's annotations either way.
func (l *layout) addRoot(ingresses []*networkingv1.Ingress) {
	route := model.Route{Backend: l.fallback, Default: l.fallback != ""}
	if len(ingresses) == 0 {
		l.finish(root, route, nil)
		return
	}
	first := ingresses[0]
	if first.Spec.DefaultBackend != nil {
		ref, refused := readBackend(first.Namespace, first.Spec.DefaultBackend)
		if refused != nil {
			l.refuse(first, "spec.defaultBackend", "the default backend answers", refused)
		} else {
			route = model.Route{Backend: ref.Key}
		}
	}
	l.finish(root, route, first)
}

// defaultKey is the key of the default backend, empty for the built-in one.
func defaultKey(v View) string {
	name := v.DefaultBackend()
	if name.Name == "" {
		return ""
	}
	return model.BackendKey(name.Namespace, name.Name, model.FirstPort)
}

func (l *layout) add(ing *networkingv1.Ingress, field string, where place, b *networkingv1.IngressBackend) {
	ref, refused := readBackend(ing.Namespace, b)
	if refused != nil {
		l.refuse(ing, field+".backend", notServed, refused)
		return
	}
	if winner, ok := l.taken[where]; ok {
		l.refuse(ing, field, notServed,
			&refusal{finding.Conflict, fmt.Sprintf("%s of host %s is taken by %s", where, l.host, winner)})
		return
	}
	l.taken[where] = objectName(ing)
	l.finish(where, model.Route{Backend: ref.Key}, ing)
}

// finish lets the features write into a route and adds it. Ing is nil for the
// route that no Ingress asked for.
func (l *layout) finish(where place, route model.Route, ing *networkingv1.Ingress) {
	route.Kind, route.Path, route.Slash = where.kind, where.path, where.slash
	if ing == nil {
		l.builder.applyFeatures(&route, nil, l.config)
	} else {
		route.Origin = origin(ing)
		if ref, ok := l.builder.fallback(ing); ok && route.Backend != "" && !route.Default {
			route.Fallback = ref.Key
		}
		problems := l.builder.applyFeatures(&route, ing.Annotations, l.config)
		l.findings = append(l.findings, problemFindings(objectName(ing), problems)...)
	}
	own := l.patterns && ing != nil && l.isPattern(ing, where.written())
	l.routes = append(l.routes, placed{route, where, own})
}

func (l *layout) refuse(ing *networkingv1.Ingress, field, effect string, why *refusal) {
	l.findings = append(l.findings, finding.Finding{
		Object: objectName(ing), Field: field, Code: why.code, Message: why.message, Effect: effect,
	})
}

// readPath is where a rule's path stands. ImplementationSpecific acts as
// Prefix. A path is taken as it is written: requests' paths are decoded before
// they are compared, rules' are not.
func (l *layout) readPath(p *networkingv1.HTTPIngressPath) (place, *refusal) {
	path := cmp.Or(p.Path, "/")
	if !strings.HasPrefix(path, "/") {
		return place{}, &refusal{finding.InvalidValue, fmt.Sprintf("path %q does not start with a slash", shorten(path))}
	}
	if l.patterns {
		if err := l.checkPattern(path); err != nil {
			return place{}, &refusal{finding.InvalidValue, fmt.Sprintf("path %q, a regular expression on this host: %v", shorten(path), err)}
		}
	} else if neverAsked(path) {
		return place{}, &refusal{finding.InvalidValue,
			fmt.Sprintf("path %q holds //, /./ or /../, which are taken out of requests' paths", shorten(path))}
	}
	kind := networkingv1.PathTypePrefix
	if p.PathType != nil {
		kind = *p.PathType
	}
	switch kind {
	case networkingv1.PathTypeExact:
		return place{kind: model.Exact, path: path}, nil
	case networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific:
		bare := strings.TrimSuffix(path, "/")
		if bare == "" {
			return place{kind: model.Prefix, path: "/"}, nil
		}
		return place{kind: model.Prefix, path: bare, slash: bare != path}, nil
	}
	return place{}, &refusal{finding.InvalidValue,
		fmt.Sprintf("pathType %q is none of Exact, Prefix and ImplementationSpecific", shorten(string(kind)))}
}

// neverAsked tells whether no request can have the path, because requests'
// paths are cleaned before they are compared.
func neverAsked(path string) bool {
	elements := strings.Split(path[1:], "/")
	for i, e := range elements {
		if e == "." || e == ".." || e == "" && i < len(elements)-1 {
			return true
		}
	}
	return false
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
