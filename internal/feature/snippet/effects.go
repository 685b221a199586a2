package snippet

import (
	"embed"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/snippet"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

const (
	accessName  = "snippet_access"
	effectsName = "snippet_effects"
)

//go:embed snippet_access.lua
var accessLua embed.FS

//go:embed snippet_effects.lua auth_variables.lua error_pages.lua expires.lua request_headers.lua response_headers.lua
var effectsLua embed.FS

// catchesOwn has NGINX's own errors go to the phase error_page. If there are too many
// profiles, fewer of them do: clients get the others as they are.
var catchesOwn = directive.Directive{Name: "snippet_error_page", Kind: directive.OwnStatuses, Order: directive.Within}

// catchesAll has those of backends go there as well: proxy_intercept_errors.
var catchesAll = directive.Directive{Name: "snippet_intercepted", Kind: directive.Statuses, Order: directive.Within}

// Access is allow, deny and limit_except of snippets. It stands behind the lists of addresses
// of annotations, which decide first.
func Access() feature.Feature {
	return feature.Feature{
		Name: accessName,
		Doc:  "Allows and denies clients by their addresses and methods, as snippets say.",
		Route: func(v feature.Values, out *feature.RouteOut) {
			if hasRules(ofLocation(v)) {
				feature.Add(out.Route, accessName, struct{}{})
			}
		},
		Host: func(v feature.Values, out *feature.HostOut) {
			if hasRules(ofServer(v)) {
				out.Policy = struct{}{}
			}
		},
		Predict: prediction.ByPhase{prediction.AuthPhase: prediction.MayAnswer("403 if the client's address is denied (allow and deny in a snippet)")},
		Lua:     accessLua,
	}
}

// hasRules reports whether a program, nil for none, may deny by addresses.
func hasRules(p *program.Program) bool {
	return slices.ContainsFunc(effectsOf(p), func(e program.Effects) bool {
		return len(e.Rules) > 0 || e.Methods != nil && len(e.Methods.Rules) > 0
	})
}

// Effects is what else snippets say besides steps: headers of requests and responses, error
// pages and rates. It stands behind all features that set headers, since snippets have the
// last word.
func Effects() feature.Feature {
	return feature.Feature{
		Name:  effectsName,
		Doc:   "Sets headers of requests and responses, error pages and rates, as snippets say.",
		Route: routeEffects,
		Host:  hostEffects,
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.AddsHeaders = feature.AllowsSnippets(v)
			out.Process.ShowsPages = feature.AllowsSnippets(v)
		},
		Directives: directive.List{catchesOwn, catchesAll},
		Predict:    prediction.ByPhase{prediction.LimitPhase: predictErrorPage},
		Lua:        effectsLua,
	}
}

// effectsPolicy is what snippet_effects.lua reads of a route.
type effectsPolicy struct {
	// Protocol is that of requests to the backend.
	Protocol string `json:"protocol"`
	Phases   phases `json:"phases"`
	// Keeps are the headers of the auth service's response that variables have, sorted.
	Keeps []string `json:"keeps,omitempty"`
}

func routeEffects(v feature.Values, out *feature.RouteOut) {
	effects := effectsOf(ofLocation(v))
	phases := phasesOf(effects)
	if len(phases) == 0 {
		return
	}
	feature.Add(out.Route, effectsName, effectsPolicy{out.Route.Profile.Protocol.String(), phases, keptHeaders(effects)})
	prepare(out.Route, effects, phases, intercepts(locationSnippet(v)) || intercepts(hostSnippet(v)))
}

// hostEffects is for what all routes of the host inherit.
func hostEffects(v feature.Values, out *feature.HostOut) {
	effects := effectsOf(ofServer(v))
	phases := phasesOf(effects)
	if len(phases) == 0 {
		return
	}
	out.Policy = effectsPolicy{Protocol: model.HTTP.String(), Phases: phases}
	for _, route := range out.Routes {
		prepare(route, effects, phases, intercepts(hostSnippet(v)))
	}
}

// intercepts reports whether errors of backends have error pages too.
func intercepts(s *snippet.Snippet) bool {
	return s != nil && slices.ContainsFunc(s.Settings, func(one snippet.Setting) bool {
		return strings.HasSuffix(one.Name, "_intercept_errors") && one.Arguments[0] == "on"
	})
}

// prepare gives a route the location of nginx.conf that effects need.
func prepare(route *model.Route, effects []program.Effects, phases phases, intercepts bool) {
	if phases["header_filter"] {
		route.Variant.HeaderFilter = true
	}
	var caught []int
	for _, e := range effects {
		for _, page := range e.ErrorPages {
			caught = append(caught, page.Statuses...)
		}
	}
	caught = slices.DeleteFunc(caught, func(status int) bool { return !directive.Catchable(status) })
	if len(caught) > 0 && route.Profile.Get(catchesOwn.Name).Text == "" && route.Profile.Get(catchesAll.Name).Text == "" {
		if intercepts {
			route.Profile = route.Profile.With(catchesAll.Catch(caught))
		} else {
			route.Profile = route.Profile.With(catchesOwn.Catch(caught))
		}
	}
}

// effectsOf are those of all blocks of a program, nil for none.
func effectsOf(p *program.Program) []program.Effects {
	if p == nil {
		return nil
	}
	list := slices.Clone(p.Effects)
	for i := range p.Locations {
		list = append(list, effectsOf(&p.Locations[i].Program)...)
	}
	return list
}

// phases are those in which effects do something.
type phases map[string]bool

func phasesOf(effects []program.Effects) phases {
	p := phases{}
	add := func(is bool, names ...string) {
		for _, name := range names {
			if is {
				p[name] = true
			}
		}
	}
	for _, e := range effects {
		add(e.InputHeaders != nil, "preaccess")
		add(e.RequestHeaders != nil || e.GRPCHeaders != nil, "request_headers", "auth_passed", "balancer")
		add(e.LimitRate != nil, "request_headers", "auth_passed")
		add(e.AuthVariables != nil, "preaccess", "request_headers", "auth_response", "auth_passed", "header_filter")
		add(e.AddHeaders != nil || e.Expires != nil || e.ResponseHeaders != nil || e.HideHeaders != nil || e.PassHeaders != nil, "header_filter")
		add(e.Unlogged, "header_filter")
		add(e.ErrorPages != nil, "error_page")
	}
	return p
}

// keptHeaders are those of auth_request_set.
func keptHeaders(effects []program.Effects) []string {
	var names []string
	for _, e := range effects {
		for _, variable := range e.AuthVariables {
			for _, piece := range variable.Value {
				switch piece.Variable {
				case program.UpstreamHeader:
					names = append(names, strings.ReplaceAll(piece.Name, "_", "-"))
				case program.UpstreamCookie:
					names = append(names, "set-cookie")
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
