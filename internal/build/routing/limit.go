package routing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// denyLeftOut denies the paths that are left out since the host has too many. Otherwise
// their requests would go to shorter paths, which may be guarded less.
//
// model.MaxHostDenials of them are denied one by one. Namespaces with few come first, so
// that none is left out because of another one. Of the other namespaces, what would get the
// requests is denied: see denyAbove. Routes of others are never denied: no tenant closes a
// part of another one's host by asking for more of it, and how that is guarded is up to
// its own namespace.
func (l *hostBuilder) denyLeftOut() {
	byNamespace := map[string][]placedRule{}
	for _, r := range l.placed {
		if r.leftOut && r.where == root {
			// Without it, there is no route that gets the requests of the others.
			l.deny(r)
		}
		if r.leftOut {
			byNamespace[r.by.Namespace] = append(byNamespace[r.by.Namespace], r)
		}
	}
	namespaces := slices.SortedFunc(maps.Keys(byNamespace), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byNamespace[a]), len(byNamespace[b])), cmp.Compare(a, b))
	})
	room := denials{model.MaxHostDenials, model.MaxHostDenialBytes}
	for _, namespace := range namespaces {
		all := byNamespace[namespace]
		list := slices.DeleteFunc(slices.Clone(all), func(r placedRule) bool { return r.where == root })
		exact := room.take(list)
		l.reportLeftOut(all, exact)
		switch {
		case exact:
			l.deny(list...)
		case l.patterns:
			l.denyPatterns(namespace, list)
		default:
			l.denyAbove(namespace, list, &room)
		}
	}
}

// denials are how many more paths can be denied one by one, and how many bytes of them.
type denials struct{ routes, bytes int }

// take is false if they don't fit.
func (d *denials) take(list []placedRule) bool {
	bytes := 0
	for _, r := range list {
		bytes += len(r.where.path)
	}
	if len(list) > d.routes || bytes > d.bytes {
		return false
	}
	d.routes, d.bytes = d.routes-len(list), d.bytes-bytes
	return true
}

// deny makes a route of each that is denied, with the settings of no Ingress.
func (l *hostBuilder) deny(list ...placedRule) {
	for _, r := range list {
		l.finish(r.field, r.where, model.Route{}, nil)
		route := &l.routes[len(l.routes)-1]
		route.Denied, route.Origin = true, spec.Origin(r.by.Ingress)
		route.own = l.patterns && l.isPattern(r.by, r.where.written()) != nil
		if route.trace != nil {
			route.trace.Ingress = r.by.Ingress
		}
	}
}

// denyAbove denies paths that don't fit one by one, together with what is beside them:
// below the route that would get their requests, all that has the same next element. If
// there is no room for these either, it denies that route, unless it is of another
// namespace.
func (l *hostBuilder) denyAbove(namespace string, list []placedRule, room *denials) {
	at := map[string][]int{}
	for i, r := range l.routes {
		if r.where.kind == model.Prefix {
			text := strings.TrimSuffix(r.where.path, "/") + "/"
			at[text] = append(at[text], i)
		}
	}
	above := newPrefixes(slices.Collect(maps.Keys(at)))
	// below has what to deny below each of these.
	below := map[string]map[routeKey]placedRule{}
	for _, r := range list {
		text := above.texts[above.longest(r.where.path+"/")]
		if rest, ok := strings.CutPrefix(r.where.written(), text); ok {
			if next, _, more := strings.Cut(rest, "/"); more {
				r.where = routeKey{kind: model.Prefix, path: text + next}
			}
		}
		if below[text] == nil {
			below[text] = map[routeKey]placedRule{}
		}
		if _, known := below[text][r.where]; !known {
			below[text][r.where] = r
		}
	}
	for _, text := range slices.Sorted(maps.Keys(below)) {
		some := slices.SortedFunc(maps.Values(below[text]), func(a, b placedRule) int {
			return strings.Compare(a.where.String(), b.where.String())
		})
		if room.take(some) {
			l.deny(some...)
			continue
		}
		for _, i := range at[text] {
			l.denyOwn(&l.routes[i], namespace)
		}
	}
}

// denyPatterns denies, of a host of expressions, the routes of the namespace that may get
// the requests of paths that don't fit: its expressions, and the longest plain text that
// such a path begins with. If one of these paths is an expression, it denies all.
func (l *hostBuilder) denyPatterns(namespace string, list []placedRule) {
	at := map[string][]int{}
	for i := range l.routes {
		if text := l.routes[i].where.written(); isLiteral(text) {
			at[nginxsyntax.LowerASCII(text)] = append(at[nginxsyntax.LowerASCII(text)], i)
		} else {
			l.denyOwn(&l.routes[i], namespace)
		}
	}
	above := newPrefixes(slices.Collect(maps.Keys(at)))
	for _, r := range list {
		text := r.where.written()
		if !isLiteral(text) {
			for i := range l.routes {
				l.denyOwn(&l.routes[i], namespace)
			}
			return
		}
		if i := above.longest(nginxsyntax.LowerASCII(text)); i >= 0 {
			for _, i := range at[above.texts[i]] {
				l.denyOwn(&l.routes[i], namespace)
			}
		}
	}
}

func (l *hostBuilder) denyOwn(r *routeCandidate, namespace string) {
	r.Denied = r.Denied || r.Origin.Namespace == namespace
}

// reportLeftOut reports the paths that are left out: one finding for each Ingress.
func (l *hostBuilder) reportLeftOut(list []placedRule, exact bool) {
	effect := "they answer 503"
	if !exact {
		effect = "they answer 503, and so do paths of this namespace which would get their requests"
	}
	for len(list) > 0 {
		first, n := list[0], 0
		for n < len(list) && list[n].by == first.by {
			if n++; l.trace != nil {
				l.reasons[place{first.by.Ingress, list[n-1].field}] = leftOut
			}
		}
		list = list[n:]
		l.findings = append(l.findings, finding.Finding{
			Object: spec.ObjectName(first.by.Ingress), Field: first.field, Code: finding.TooMany,
			Message: fmt.Sprintf("%s: %d paths of this Ingress, from %s on, are left out of host %s", leftOut, n, finding.Shorten(first.where.String()), l.host),
			Effect:  effect, Rejected: true, Denies: true,
		})
	}
}

var leftOut = fmt.Sprintf("a host may have %d paths, and %d KiB of paths and settings, and older Ingresses come first",
	model.MaxHostRoutes, model.MaxHostBytes>>10)
