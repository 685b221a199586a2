package snippet

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/snippet"
)

const settingsName = "snippet_settings"

//go:embed snippet_settings.lua
var settingsLua embed.FS

// Settings is what snippets say for all requests of a route: the values of annotations that
// mean the same, and settings of the profile that no annotation has.
func Settings() feature.Feature {
	return feature.Feature{
		Name:       settingsName,
		Doc:        "Follows directives in snippets that are settings of NGINX.",
		Implies:    implies,
		Route:      routeSettings,
		Host:       hostSettings,
		Directives: profileDirectives(),
		Resources:  settingsResources(),
		Lua:        settingsLua,
	}
}

// implies are the annotations that the snippets of an Ingress stand for.
func implies(v feature.Values, scope feature.Scope) []feature.Implied {
	s, by := snippetOf(v, scope)
	if s == nil {
		return nil
	}
	uses := usesOf()
	var list []feature.Implied
	for _, setting := range s.Settings {
		u := uses[setting.Name]
		if u.covered && scope == feature.ScopeHost {
			continue
		}
		for _, annotation := range u.annotations {
			text, ok := annotation.text(setting)
			if ok && !isImplied(list, annotation.name) {
				list = append(list, feature.Implied{Annotation: annotation.name, Text: text, By: by, Where: setting.Where()})
			}
		}
	}
	return list
}

func isImplied(list []feature.Implied, annotation string) bool {
	return slices.ContainsFunc(list, func(i feature.Implied) bool { return i.Annotation == annotation })
}

// snippetOf is the snippet that says something of a scope, nil if there is none.
func snippetOf(v feature.Values, scope feature.Scope) (*snippet.Snippet, feature.AnySetting) {
	if scope == feature.ScopeHost {
		return hostSnippet(v), serverSnippet
	}
	return locationSnippet(v), configurationSnippet
}

func routeSettings(v feature.Values, out *feature.RouteOut) {
	if s := locationSnippet(v); s != nil {
		f := newFollower(v, s, configurationSnippet, &out.Report)
		f.followAll(false)
		f.write(out.Route)
	}
}

// hostSettings gives all routes of the host what their own snippets don't say.
func hostSettings(v feature.Values, out *feature.HostOut) {
	s := hostSnippet(v)
	if s == nil {
		return
	}
	f := newFollower(v, s, serverSnippet, &out.Report)
	f.followAll(true)
	for _, route := range out.Routes {
		f.write(route)
	}
}

// A follower follows the settings of one snippet.
type follower struct {
	values  feature.Values
	snippet *snippet.Snippet
	setting feature.AnySetting
	report  *feature.Report
	// profile are the values for the profiles of routes, and variables those of variables of
	// nginx.conf that these read. A route whose own snippet has a directive inherits none of
	// that name.
	profile   []model.ProfileValue
	variables []variable
	// seen is how often each directive came.
	seen map[string]int
	// limits has each zone that there is a limit by.
	limits map[string]bool
}

// A variable is one of nginx.conf, which directives of a group read.
type variable struct {
	group, name string
	value       template.Template
}

// settingsPolicy is what snippet_settings.lua reads of a route.
type settingsPolicy struct {
	// Variables are the values of variables of nginx.conf.
	Variables map[string]template.Template `json:"variables,omitempty"`
}

func newFollower(v feature.Values, s *snippet.Snippet, setting feature.AnySetting, report *feature.Report) *follower {
	return &follower{values: v, snippet: s, setting: setting, report: report, seen: map[string]int{}, limits: map[string]bool{}}
}

// followAll follows all settings but those that are annotations.
func (f *follower) followAll(server bool) {
	uses := usesOf()
	for _, s := range f.snippet.Settings {
		u := uses[s.Name]
		f.seen[s.Name]++
		switch {
		case server && u.covered:
			f.idle(s, "it does not apply to the paths of Ingresses, which have a value of their own"+instead(u, s))
		case u.follow != nil:
			u.follow(f, s)
		case len(u.annotations) > 0:
			if f.seen[s.Name] > 1 && u.once {
				f.warn(s, "only the first one of several is followed")
			} else if _, ok := u.annotations[0].text(s); !ok {
				f.warn(s, "values with variables are not supported")
			}
		case u.reason != "":
			f.warn(s, u.reason)
		}
	}
}

// instead names the annotations that do the same, if they take the directive's value.
func instead(u use, s snippet.Setting) string {
	var names []string
	for _, a := range u.annotations {
		text, ok := a.text(s)
		if !ok {
			return ""
		}
		names = append(names, fmt.Sprintf("%s: %q", a.name, text))
	}
	if names == nil {
		return ""
	}
	return "; for these, use the annotation " + strings.Join(names, " and ")
}

// idle reports a directive that does nothing in ingress-nginx either, and warn one that would
// there.
func (f *follower) idle(s snippet.Setting, message string) {
	f.report.Warn(f.setting, finding.NoEffect, s.Where()+": "+message, "nothing is missing: it has no effect in ingress-nginx either")
}

func (f *follower) warn(s snippet.Setting, message string) {
	f.report.Warn(f.setting, finding.NotSupported, s.Where()+": "+message, "the directive has no effect")
}

// deny reports a directive that may control access and is not followed.
func (f *follower) deny(s snippet.Setting, message string) {
	f.report.Deny(f.setting, finding.NotSupported, s.Where()+": "+message)
}

// set has profiles have values.
func (f *follower) set(values ...model.ProfileValue) { f.profile = append(f.profile, values...) }

// write gives a route what it does not have by its own snippet.
func (f *follower) write(route *model.Route) {
	own := map[string]bool{}
	for _, v := range route.Profile.Values() {
		own[groupOf(v.Name)] = true
	}
	for _, v := range f.profile {
		if !own[groupOf(v.Name)] {
			route.Profile = route.Profile.With(v)
		}
	}
	values := map[string]template.Template{}
	for _, v := range f.variables {
		if !own[v.group] {
			values[v.name] = v.value
		}
	}
	if len(values) > 0 {
		feature.Add(route, settingsName, settingsPolicy{values})
	}
}
