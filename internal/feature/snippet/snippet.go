// Package snippet is what tenants' snippets do: configuration-snippet and server-snippet.
//
// Package internal/syntax/snippet translates their text. A Program runs in Lua: its steps in this
// feature, and what else it says, its effects, in those beside it.
package snippet

import (
	"embed"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/snippet"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

const name = "snippet_steps"

//go:embed snippet_steps.lua
var lua embed.FS

var (
	configurationSnippet = feature.Setting[*snippet.Source]{
		Annotation: "configuration-snippet", Parse: readText, Risk: feature.Critical, Snippet: true,
		Doc: "Directives of NGINX for the paths of the Ingress. Only with allow-snippet-annotations, and only what [snippets.md](snippets.md) lists.",
	}
	serverSnippet = feature.Setting[*snippet.Source]{
		Annotation: "server-snippet", Parse: readText, Scope: feature.ScopeHost, Risk: feature.Critical, Snippet: true,
		Doc: "Directives of NGINX for the hosts of the Ingress. Only with allow-snippet-annotations, and only what [snippets.md](snippets.md) lists.",
	}
)

// Feature is the steps and the location blocks of snippets.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Follows directives of NGINX in snippets.",
		Settings: []feature.AnySetting{configurationSnippet, serverSnippet},
		Route:    route,
		Host:     host,
		Predict:  prediction.ByPhase{prediction.RoutePhase: predict},
		Lua:      lua,
	}
}

func readText(text string) (*snippet.Source, error) { return &snippet.Source{Text: text}, nil }

// locationSnippet is the configuration-snippet of an Ingress, nil if it has none that counts.
func locationSnippet(v feature.Values) *snippet.Snippet {
	t := configurationSnippet.Get(v)
	if t == nil || !feature.AllowsSnippets(v) {
		return nil
	}
	options := optionsOf(v)
	if s := hostSnippet(v); s != nil {
		options.Defined = s.Defines
	}
	return t.Parse(snippet.InLocation, options)
}

// hostSnippet is the server-snippet of an Ingress, or of a host.
func hostSnippet(v feature.Values) *snippet.Snippet {
	t := serverSnippet.Get(v)
	if t == nil || !feature.AllowsSnippets(v) {
		return nil
	}
	return t.Parse(snippet.InServer, optionsOf(v))
}

// optionsOf are what all snippets may refer to.
func optionsOf(v feature.Values) snippet.Options {
	return snippet.Options{Administrator: feature.Defined(v).Variables}
}

// ofLocation is the program of an Ingress's configuration-snippet, nil if it has none.
func ofLocation(v feature.Values) *program.Program {
	if s := locationSnippet(v); s != nil {
		return &s.Program
	}
	return nil
}

// ofServer is the program of a host's server-snippet, nil if it has none.
func ofServer(v feature.Values) *program.Program {
	if s := hostSnippet(v); s != nil {
		return &s.Program
	}
	return nil
}

// routePolicy is what snippet_steps.lua reads of a route.
type routePolicy struct {
	Location program.Program `json:"location"`
}

// serverPolicy is what it reads of a host before a route is found. Namespace is the one whose
// time expressions take.
type serverPolicy struct {
	Server    program.Program `json:"server"`
	Namespace string          `json:"namespace"`
}

// hostPolicy is on all routes of a host with a server-snippet, for explain.
type hostPolicy struct {
	server program.Program
}

func route(v feature.Values, out *feature.RouteOut) {
	if t := configurationSnippet.Get(v); t == nil || t.Text == "" {
		return
	}
	s := locationSnippet(v)
	if s == nil {
		warnIdle(configurationSnippet, &out.Report)
		return
	}
	snippet.ReportTo[feature.AnySetting](s, configurationSnippet, &out.Report)
	own := *ofLocation(v)
	own.Locations = slices.DeleteFunc(slices.Clone(own.Locations), func(l program.Location) bool {
		return isOutside(l, out.Route)
	})
	if len(own.Steps)+len(own.Effects)+len(own.Locations) > 0 {
		feature.Add(out.Route, name, routePolicy{own})
	}
}

// isOutside reports whether a location block in the location of a route can't be asked for
// there. NGINX does not start with one.
func isOutside(l program.Location, r *model.Route) bool {
	return !strings.HasPrefix(l.Match, "~") && r.Kind == model.Prefix && !strings.HasPrefix(l.Path, r.Path)
}

func host(v feature.Values, out *feature.HostOut) {
	if t := serverSnippet.Get(v); t == nil || t.Text == "" {
		return
	}
	s := hostSnippet(v)
	if s == nil {
		warnIdle(serverSnippet, &out.Report)
		return
	}
	snippet.ReportTo[feature.AnySetting](s, serverSnippet, &out.Report)
	if out.Denied {
		// Its steps and location blocks could answer before the routes, which are denied.
		return
	}
	own := *ofServer(v)
	own.Locations = withoutConflicts(own.Locations, out)
	if len(own.Steps)+len(own.Effects)+len(own.Locations) > 0 {
		out.Server = serverPolicy{own, v.OriginOf(serverSnippet).Namespace}
	}
	if len(own.Steps)+len(own.Locations) > 0 {
		out.Policy = hostPolicy{own}
	}
}

func warnIdle(s feature.AnySetting, out *feature.Report) {
	out.Warn(s, finding.NotAllowed, "snippets of Ingresses count only while the key allow-snippet-annotations is true", "it has no effect")
}
