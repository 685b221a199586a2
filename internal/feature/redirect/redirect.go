// Package redirect redirects clients: from a path, from the root of a host, and
// from a www redirect alias to its host.
package redirect

import (
	"embed"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

const (
	name      = "redirect"
	maxLength = 4000 // bytes of a target
)

//go:embed *.lua
var lua embed.FS

var (
	appRoot = feature.Setting[template.Template]{
		Annotation: "app-root", Parse: parseRoot, Scope: feature.ScopeHost, Risk: feature.Medium,
		Doc: "The path that requests for / of the host are redirected to, with relative-redirects without scheme and host.",
	}
	permanent = feature.Setting[string]{
		Annotation: "permanent-redirect", Parse: parseURL, OnInvalid: feature.Deny, Risk: feature.Medium,
		Doc: "The URL or path that all requests are redirected to. The path and query of the request are not added.",
	}
	permanentCode = feature.Setting[int]{
		Annotation: "permanent-redirect-code", Needs: feature.Needs(permanent, func(v feature.Values) bool { return permanent.Get(v) != "" }), Default: 301, Parse: parseCode, Risk: feature.Low,
		Doc: "The status code of permanent-redirect: 301, 302, 303, 307 or 308. With any other number, 301 is used.",
	}
	temporal = feature.Setting[string]{
		Annotation: "temporal-redirect", Parse: parseURL, OnInvalid: feature.Deny, Risk: feature.Medium,
		Doc: "The URL that all requests are redirected to. The path and query of the request are not added. It takes precedence over permanent-redirect. It may be a path together with relative-redirects; " +
			"otherwise a path is not used, and requests are not redirected.",
	}
	temporalCode = feature.Setting[int]{
		Annotation: "temporal-redirect-code", Needs: feature.Needs(temporal, func(v feature.Values) bool { return temporal.Get(v) != "" }), Default: 302, Parse: parseCode, Risk: feature.Low,
		Doc: "The status code of temporal-redirect: 301, 302, 303 or 307. With any other number, 302 is used.",
	}
	relative = feature.Setting[bool]{
		Annotation: "relative-redirects", Key: "relative-redirects", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Omits the scheme and host in the Location of redirects to another path of the same host.",
	}
	fromToWWW = feature.Setting[bool]{
		Annotation: "from-to-www-redirect", Parse: feature.Bool, Scope: feature.ScopeName, Risk: feature.Low,
		Doc: "For each host of the Ingress: redirects www.HOST to HOST. If the host itself begins with www., redirects the name without www. to it.",
	}
)

// Feature is redirects.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Redirects clients to other URLs.",
		Settings: []feature.AnySetting{appRoot, permanent, permanentCode, temporal, temporalCode, relative, fromToWWW},
		Route:    route,
		Host:     host,
		Names:    names,
		Predict:  prediction.ByPhase{prediction.RoutePhase: predict},
		Causes:   map[feature.Effect]string{feature.WWWRedirect: fromToWWW.Annotation},
		Lua:      lua,
	}
}

// policy is what redirect.lua reads: Root of a whole host, or all else of a
// route.
type policy struct {
	// Root is where requests for "/" go.
	Root template.Template `json:"root,omitempty"`
	To   string            `json:"to,omitempty"`
	Code int               `json:"code,omitempty"`
}

func route(v feature.Values, out *feature.RouteOut) {
	out.Route.Relative = relative.Get(v)
	to, code := temporal.Get(v), codeIn(temporalCode, v, 307)
	if to != "" && !isURL(to) && !(out.Route.Relative && strings.HasPrefix(to, "/")) {
		out.Ignore(temporal, finding.InvalidValue, "must begin with http:// or https://, or with a slash and "+relative.Annotation+`: "true"`, "requests are not redirected")
		return
	}
	if to == "" {
		to, code = permanent.Get(v), codeIn(permanentCode, v, 308)
	}
	if to != "" {
		feature.Add(out.Route, name, policy{To: to, Code: code})
	}
}

// redirects are the statuses of redirects.
var redirects = []int{301, 302, 303, 307, 308}

// codeIn replaces a number that is not a redirect by the default. ingress-nginx does
// so with those out of range, and answers the others (300, 304, 305, 306) without a
// Location.
func codeIn(s feature.Setting[int], v feature.Values, most int) int {
	code := s.Get(v)
	if !slices.Contains(redirects, code) || code > most {
		return s.Default
	}
	return code
}

func names(v feature.Values, out *feature.NamesOut) {
	if fromToWWW.Get(v) {
		out.WWWBy = fromToWWW
	}
}

func host(v feature.Values, out *feature.HostOut) {
	if path := appRoot.Get(v); path != nil {
		out.Policy = policy{Root: path}
	}
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

var (
	parseURL  = feature.Matching(`^[A-Za-z0-9._~:/,?&=-]*$`, maxLength, "must consist of letters, digits and -._~:/,?&=")
	parseRoot = feature.TemplateOf(feature.Matching(`^/[A-Za-z0-9._~:/$-]*$`, maxLength,
		"must be a path that begins with a slash, of letters, digits and -._~:/, and variables"), false)
)

// parseCode accepts any number; codeIn decides which of them are used.
func parseCode(text string) (int, error) {
	code, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("must be the status code of a redirect")
	}
	return code, nil
}
