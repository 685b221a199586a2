package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

// maxLost is the maximum number of rules that are listed as lost.
const maxLost = 20

// explainRoutes finds the route that won, and why the others lost. It returns the
// one that won, or nil.
func (x *explainer) explainRoutes(d router.Decision, h *host) *model.Route {
	for _, cause := range h.trace.Patterns {
		x.out.Patterns = append(x.out.Patterns, report.Cause{
			Ingress: x.ingress(cause.Ingress), Path: cause.Path, Setting: cmp.Or(cause.Annotation, cause.Key), Value: cause.Value,
		})
	}
	won := -1
	if d.Route != nil {
		won = d.Route.Index
	} else if d.Err != nil {
		return nil
	}
	for i, route := range h.Routes {
		// The route for paths without a rule loses to every rule.
		if i != won && h.trace.Routes[i].Field != "" {
			x.loser(h, i, won, route)
		}
	}
	for _, lost := range h.trace.Lost {
		x.lostRule(h, lost)
	}
	x.orderLost()
	if won < 0 {
		return nil
	}
	route, rule := &h.Routes[won], h.trace.Routes[won]
	x.out.Route = &report.Route{Rule: x.rule(rule, *route), Why: x.whyWon(d, h, won), Denied: route.Denied, SatisfyAny: route.SatisfyAny}
	for _, p := range route.Policies {
		x.out.Route.Carries = append(x.out.Route.Carries, report.Carried{Feature: p.Feature, Value: encode(p.Value)})
	}
	x.out.Policies = x.policies(slices.Concat(rule.Settings, h.trace.Host, x.globalSettings(route)))
	x.explainProfile(route.Profile)
	x.explainPlain(h, won)
	return route
}

// globalSettings are the global settings of the features with a policy on the
// route, and those that deny it.
func (x *explainer) globalSettings(route *model.Route) []feature.Reading {
	return slices.DeleteFunc(x.Builder.TraceProcess(x.Store), func(s feature.Reading) bool {
		return !s.KeyDenies && !slices.ContainsFunc(route.Policies, func(p model.Policy) bool { return p.Feature == s.Feature })
	})
}

func (x *explainer) rule(t routing.RuleTrace, r model.Route) report.Rule {
	return report.Rule{
		Ingress: x.ingress(t.Ingress), Field: t.Field, PathType: t.PathType, Path: t.Written,
		Matches: r.Kind.String() + " " + r.Written(), Backend: r.Backend,
	}
}

func (x *explainer) whyWon(d router.Decision, h *host, won int) string {
	route, rule := h.Routes[won], h.trace.Routes[won]
	switch {
	case rule.Ingress == nil:
		return "no rule has the name as its host"
	case rule.Field == "":
		return "no rule of the host matches; the annotations of its oldest Ingress apply"
	case rule.Field == "spec.defaultBackend":
		return "no rule of the host matches; the Ingress has a spec.defaultBackend"
	case route.Kind == model.Pattern:
		return "it is the first regular expression that matches: longer paths are tried first"
	case d.Status == 301:
		return "its path is that of the request with a slash at the end"
	case route.Kind == model.Exact:
		return "exact paths take precedence"
	case route.Path == "/":
		return "it matches all paths, and none that is longer matches"
	}
	return "it is the longest path that matches"
}

// loser describes why a route did not win, if it is related to the request.
func (x *explainer) loser(h *host, i, won int, route model.Route) {
	matches, redirect := x.alone(route)
	lost := report.Lost{Outcome: report.Outranked}
	switch {
	case matches && won >= 0:
		lost.Why = whyOutranked(h.Routes[won], route, redirect, won < i)
		lost.To = ingressName(h.trace.Routes[won].Ingress)
	case matches:
		return
	default:
		lost.Outcome, lost.Why = report.Missed, x.whyMissed(route, h.trace.Routes[i])
		if lost.Why == "" {
			return
		}
	}
	x.addLost(lost, h.trace.Routes[i], route)
}

func (x *explainer) addLost(lost report.Lost, t routing.RuleTrace, route model.Route) {
	if len(x.out.Lost) == maxLost {
		x.out.More++
		return
	}
	lost.Rule = x.rule(t, route)
	x.out.Lost = append(x.out.Lost, lost)
}

func whyOutranked(won, route model.Route, redirect, later bool) string {
	switch {
	case route.Kind == model.Pattern && later && len(won.Path) == len(route.Path):
		return "among paths of the same length, the last in alphabetical order is tried first"
	case route.Kind == model.Pattern:
		return "longer paths are tried first"
	case won.Kind == model.Exact:
		return "exact paths take precedence"
	case redirect:
		return "it matches below its path only; the path itself has a rule without the slash"
	case won.Path == route.Path:
		return "paths below it match the rule with the slash at the end"
	}
	return "a longer path matches"
}

// whyMissed returns why a path does not match although it looks similar, or empty
// if it does not.
func (x *explainer) whyMissed(route model.Route, rule routing.RuleTrace) string {
	path := x.out.Request.Path
	written := rule.Written
	bare := strings.TrimSuffix(written, "/")
	starts := len(bare) > 0 && len(path) >= len(bare) && strings.EqualFold(path[:len(bare)], bare)
	if route.Kind == model.Pattern {
		plain := model.Route{Kind: rule.Kind, Path: rule.Path, Slash: rule.Slash}
		if matches, _ := x.alone(plain); matches {
			return fmt.Sprintf("the host's paths are regular expressions, and %s does not match", route.Path)
		}
		return ""
	}
	switch {
	case routing.WouldMatch(written, path):
		return "it looks like a regular expression that matches, and the host's paths are plain text" + x.because(feature.Expressions)
	case !starts:
		return ""
	case path[:len(bare)] != bare:
		return "upper and lower case differ"
	case route.Kind == model.Exact && strings.TrimSuffix(path, "/") == bare:
		return "the slash at the end makes a difference"
	case route.Kind == model.Exact && path[len(bare)] == '/':
		return "an exact path does not match paths below it"
	case route.Kind == model.Prefix:
		return fmt.Sprintf("%s matches itself and paths below %s/", bare, bare)
	}
	return ""
}

// alone reports whether a route would match the request's path if it were the only
// one, and whether it would redirect to its slash.
func (x *explainer) alone(route model.Route) (matches, redirect bool) {
	d := decide(model.Host{Routes: []model.Route{route}}, x.out.Request.Path)
	return d.Route != nil && d.Err == nil, d.Status == 301
}

// decide routes a path by the routes of one host.
func decide(h model.Host, path string) router.Decision {
	h.Name = "host"
	units := map[unit.Key]unit.Unit{}
	for _, u := range []unit.Unit{unit.FromHost(h), unit.FromName(model.Name{Name: h.Name, Host: h.Name})} {
		units[u.Key] = u
	}
	return router.New(router.Settings{Lookup: func(key unit.Key) (unit.Unit, bool) {
		u, ok := units[key]
		return u, ok
	}}).Route(h.Name, path)
}

// lostRule describes a rule that is not served, if it is related to the request.
func (x *explainer) lostRule(h *host, lost routing.LostRule) {
	route := model.Route{Kind: lost.Kind, Path: lost.Path, Slash: lost.Slash, Backend: lost.Backend}
	if lost.Path == "" {
		if !strings.HasPrefix(x.out.Request.Path, lost.Written) {
			return
		}
		route.Path = lost.Written
	} else if matches, _ := x.alone(route); !matches {
		return
	}
	said := report.Lost{Outcome: report.Rejected, To: ingressName(lost.Winner), Why: lost.Why}
	switch {
	case lost.Winner == lost.Ingress && lost.Winner != nil:
		said.Why = "an earlier rule of the same Ingress has the path"
	case lost.Winner != nil && lost.Field == "spec.defaultBackend":
		said.Why = "an older Ingress has a spec.defaultBackend without rules"
	case lost.Winner != nil:
		said.Why = "an older Ingress has the same path"
	}
	x.addLost(said, lost.RuleTrace, route)
	if len(x.out.Patterns) > 0 && x.out.More == 0 {
		x.out.Lost[len(x.out.Lost)-1].Matches = "pattern ^" + lost.Written
	}
}

// orderLost sorts the rules that are not served first.
func (x *explainer) orderLost() {
	order := []string{report.Rejected, report.Outranked, report.Missed}
	slices.SortStableFunc(x.out.Lost, func(a, b report.Lost) int {
		return slices.Index(order, a.Outcome) - slices.Index(order, b.Outcome)
	})
}

// explainPlain finds the route that would win if the host's paths were not
// regular expressions.
func (x *explainer) explainPlain(h *host, won int) {
	if len(h.trace.Patterns) == 0 {
		return
	}
	plain := model.Host{Routes: slices.Clone(h.Routes)}
	for i := range plain.Routes {
		r, t := &plain.Routes[i], h.trace.Routes[i]
		r.Kind, r.Path, r.Slash = t.Kind, t.Path, t.Slash
	}
	d := decide(plain, x.out.Request.Path)
	if d.Route == nil || d.Route.Index == won {
		return
	}
	rule := x.rule(h.trace.Routes[d.Route.Index], plain.Routes[d.Route.Index])
	x.out.Plain = &rule
}
