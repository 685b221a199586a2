package routing

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// maxCanaries is how many canaries one route may have: a request is
// compared with all of them.
const maxCanaries = 16

// maxExcept is how many paths a canary may be kept from.
const maxExcept = 16

// addCanaries gives the routes their canaries, the oldest first. A canary belongs to
// the route of its own host, path and kind of path and to no other. (ingress-nginx
// ties it to the backend, so that it takes requests of every host that uses the same
// Service.)
//
// A path that has no route of its own takes nothing for its backend, not by the
// route above it either.
func (l *hostBuilder) addCanaries(canaries []*contribution) {
	routes := make(map[routeKey]int, len(l.routes))
	for i, r := range l.routes {
		routes[r.where] = i
	}
	for _, p := range canaries {
		name, when, report := l.builder.settings.Canary(p.Parsed, noCanary)
		// Of its other annotations none counts: those of the routes' Ingresses do.
		problems := append(p.ProblemsOf(name), report.Problems...)
		denied := slices.ContainsFunc(problems, func(p feature.Problem) bool { return p.Denies })
		for _, o := range l.offers(p, routes) {
			l.addCanary(p, name, o, when, denied)
		}
		l.reportWhole(p, problems)
	}
}

const noCanary = "no request goes to this backend"

type offer struct {
	field string
	where routeKey
	route int // -1 if there is none
	model.Canary
}

// offers are what a canary offers the host, as far as it can be read.
func (l *hostBuilder) offers(p *contribution, routes map[routeKey]int) []offer {
	var list []offer
	add := func(field string, where routeKey, written *networkingv1.IngressBackend) {
		ref, refused := spec.ReadBackend(p.Namespace, written)
		if refused != nil {
			l.refuse(p, field+".backend", noCanary, refused)
			return
		}
		route, ok := routes[where]
		if !ok {
			route = -1
		}
		list = append(list, offer{field, where, route, model.Canary{Backend: ref.Key}})
	}
	if len(p.Spec.Rules) == 0 {
		add("spec.defaultBackend", root, p.Spec.DefaultBackend)
	}
	for field, path := range p.paths() {
		if where, ok := routeKeyOf(path); ok {
			add(field, where, &path.Backend)
		} else {
			l.refuse(p, field, noCanary, unknownPathType(path))
		}
	}
	lost := map[string][]string{} // paths without a route, by backend
	for _, o := range list {
		if o.route < 0 {
			lost[o.Backend] = append(lost[o.Backend], o.where.path)
		}
	}
	for i := range list {
		list[i].Except = lost[list[i].Backend]
	}
	return list
}

func (l *hostBuilder) addCanary(p *contribution, name string, o offer, when any, denied bool) {
	refuse := func(code finding.Code, message string) {
		l.refuse(p, o.field, noCanary, &spec.Rejection{Code: code, Message: message})
	}
	if denied {
		refuse(finding.NotAllowed, "the Ingress has annotations that are rejected")
		return
	}
	if o.route < 0 {
		refuse(finding.MissingObject, fmt.Sprintf("no other Ingress has the route %s of host %s", finding.Shorten(o.where.String()), l.host))
		return
	}
	if len(o.Except) > maxExcept {
		refuse(finding.TooMany, fmt.Sprintf("this backend has more than %d paths for which no other Ingress has a route", maxExcept))
		return
	}
	o.When = when
	route := &l.routes[o.route].Route
	switch {
	case route.Backend == "":
		refuse(finding.MissingObject, fmt.Sprintf("the route %s of host %s has no backend, so it can't have a canary", finding.Shorten(o.where.String()), l.host))
	case route.Backend == o.Backend:
		refuse(finding.Conflict, "the route has that backend already")
	case len(canariesOf(route, name)) == maxCanaries:
		refuse(finding.TooMany, fmt.Sprintf("the route has %d older canaries, which is the maximum", maxCanaries))
	case !l.size.AddCanary(o.Canary, model.MaxHostBytes):
		refuse(finding.TooMany, leftOut)
	default:
		l.noteOwnSettings(p, o, route)
		setCanaries(route, name, append(slices.Clip(canariesOf(route, name)), o.Canary))
		l.noteCanary(p, o)
		l.checkProtocol(p, o)
		if l.trace != nil {
			trace := l.routes[o.route].trace
			trace.Canaries = append(trace.Canaries, CanaryTrace{name, p.Ingress, o.field})
		}
	}
}

// canariesOf are those that a feature gave a route.
func canariesOf(route *model.Route, name string) []model.Canary {
	for _, p := range route.Policies {
		if list, ok := p.Value.([]model.Canary); ok && p.Feature == name {
			return list
		}
	}
	return nil
}

func setCanaries(route *model.Route, name string, list []model.Canary) {
	for i, p := range route.Policies {
		if _, ok := p.Value.([]model.Canary); ok && p.Feature == name {
			route.Policies[i].Value = list
			return
		}
	}
	feature.Add(route, name, list)
}

// noteOwnSettings reports settings of the route's backend that its canary does not have: a backend has
// those of the Ingresses that name it.
func (l *hostBuilder) noteOwnSettings(canary *contribution, o offer, route *model.Route) {
	main := slices.IndexFunc(l.contributions, func(p *contribution) bool { return spec.Origin(p.Ingress) == route.Origin })
	if main < 0 {
		return
	}
	var names []string
	for _, f := range l.builder.features {
		for _, s := range f.Settings {
			if d := s.Spec(); d.Scope == feature.ScopeBackend && d.Merge == feature.MergeOwner && l.contributions[main].Uses(s) && !canary.Uses(s) {
				names = append(names, d.Annotation)
			}
		}
	}
	if len(names) > 0 {
		l.findings = append(l.findings, finding.Finding{
			Object: spec.ObjectName(canary.Ingress), Field: o.field, Code: finding.Unexpected,
			Message: fmt.Sprintf("%s of %s is for its own Service, and the canary's Service has no such setting", finding.ShortenList(names), spec.ObjectName(l.contributions[main].Ingress)),
			Effect:  "requests to the canary go to its Service without it; set it at the canary too",
		})
	}
}
