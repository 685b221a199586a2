// Package canary sends some of a route's requests to another backend: those
// with a header or cookie that says so, and a share of all others.
//
// A canary Ingress makes no routes. Its backends are canaries of the routes that
// other Ingresses have at the same hosts and paths.
package canary

import (
	"embed"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

//go:embed *.lua
var lua embed.FS

// minTotal is what a smaller total counts as, as with ingress-nginx.
const minTotal = 100

var (
	canary = feature.Setting[bool]{
		Annotation: "canary", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Makes the Ingress a canary: its backends get some of the requests of other Ingresses' routes with the same host and path. " +
			"A route can have several canaries; the oldest comes first. All other annotations are taken from the route's own Ingress.",
	}
	byHeader = feature.Setting[string]{
		Annotation: "canary-by-header", Needs: feature.NeedsTrue(canary), Parse: parseName, Risk: feature.Medium,
		Doc: "The name of a request header. Its value \"always\" selects the canary, and \"never\" the backend of the route. With other values, the cookie and the weight are used.",
	}
	byHeaderValue = feature.Setting[string]{
		Annotation: "canary-by-header-value", Needs: feature.NeedsTrue(canary), Parse: parseSpacedValue, Risk: feature.Medium,
		Doc: "The value of the canary-by-header header that selects the canary. If it is set, the values \"always\" and \"never\" have no meaning.",
	}
	byHeaderPattern = feature.Setting[pattern]{
		Annotation: "canary-by-header-pattern", Needs: feature.NeedsTrue(canary), Parse: feature.Optional(parsePattern), Risk: feature.Medium,
		Doc: "A regular expression. A header value that it matches selects the canary. canary-by-header-value takes precedence.",
	}
	byCookie = feature.Setting[string]{
		Annotation: "canary-by-cookie", Needs: feature.NeedsTrue(canary), Parse: parseName, Risk: feature.Medium,
		Doc: "The name of a cookie. Its value \"always\" selects the canary, and \"never\" the backend of the route. With other values, the weight is used.",
	}
	weight = feature.Setting[int]{
		Annotation: "canary-weight", Needs: feature.NeedsTrue(canary), Parse: feature.Int(-1<<31, 1<<31-1), Risk: feature.Low,
		Doc: "The number of requests, out of canary-weight-total, that go to the canary, if neither the header nor the cookie selects a backend.",
	}
	weightTotal = feature.Setting[int]{
		Annotation: "canary-weight-total", Needs: feature.NeedsTrue(canary), Default: minTotal, Parse: feature.Int(-1<<31, 1<<31-1), Risk: feature.Low,
		Doc: "The total of which canary-weight is a part. Values below 100 have the effect of 100.",
	}
)

const (
	sticky = "sticky"
	legacy = "legacy"
)

// behavior is the canary's, as in ingress-nginx: a session that is at the route's own backend
// stays there either way.
var behavior = feature.Setting[string]{
	Annotation: "affinity-canary-behavior", Default: sticky, Parse: feature.Word(sticky, legacy), Risk: feature.Low,
	Doc: "For canaries of a route whose backend keeps sessions (affinity). sticky: the canary keeps sessions by the same cookie, and a session stays at the canary, or at the route's " +
		"own backend, independent of the header, the cookie and the weight of the canary. legacy: the canary keeps none, so these decide about each request without a session at the route's own backend.",
}

// Feature is canaries.
func Feature() feature.Feature {
	return feature.Feature{
		Name: "canary",
		Doc:  "Sends some of a route's requests to another backend (a canary release).",
		Settings: []feature.AnySetting{
			canary, byHeader, byHeaderValue, byHeaderPattern, byCookie, weight, weightTotal, behavior,
		},
		Canary: canaryOf,
		Choose: choose,
		Lua:    lua,
	}
}

// when is what canary.lua reads of a canary.
type when struct {
	// Header and Cookie are names, a header's as NGINX has it in variables.
	Header string `json:"header,omitempty"`
	Value  string `json:"value,omitempty"`
	// Pattern is the text to match by. Broken is set instead where it is
	// not a valid expression.
	Pattern string `json:"pattern,omitempty"`
	Broken  bool   `json:"broken,omitempty"`
	Cookie  string `json:"cookie,omitempty"`
	// Share of requests from 0 to 1.
	Share float64 `json:"share,omitempty"`
	// Legacy keeps no sessions.
	Legacy bool `json:"legacy,omitempty"`
}

func canaryOf(v feature.Values, report *feature.Report) (any, bool) {
	if !canary.Get(v) {
		return nil, false
	}
	w := when{Header: variable(byHeader.Get(v)), Cookie: byCookie.Get(v), Value: byHeaderValue.Get(v), Legacy: behavior.Get(v) == legacy}
	expression := byHeaderPattern.Get(v)
	if w.Value == "" {
		w.Pattern, w.Broken = expression.text, expression.broken != ""
	}
	if expression.broken != "" {
		report.Warn(byHeaderPattern, finding.InvalidValue, "invalid regular expression: "+expression.broken, "requests with the header do not go to the canary")
	}
	w.Share = min(max(float64(weight.Get(v))/float64(max(weightTotal.Get(v), minTotal)), 0), 1)
	return w, true
}

// variable is the name of a header as NGINX has it in $http_NAME.
func variable(header string) string {
	return strings.ReplaceAll(strings.ToLower(header), "-", "_")
}

var (
	parseName  = feature.Matching(`^[A-Za-z0-9._~-]+$`, 200, "must consist of letters, digits and -._~")
	parseValue = feature.Matching(`^[A-Za-z0-9._~/:-]*$`, 1000, "must consist of letters, digits and :/-._~")
)

func parseSpacedValue(text string) (string, error) {
	return parseValue(strings.ReplaceAll(text, " ", ""))
}

// A pattern is an expression, or the reason why it is invalid. An invalid one keeps
// requests with the header away from the canary: without it, the weight would
// decide.
type pattern struct{ text, broken string }

func parsePattern(text string) (pattern, error) {
	p, err := pcre.Compile(text, pcre.Options{})
	if err != nil {
		return pattern{broken: err.Error()}, nil
	}
	return pattern{text: p.Text()}, nil
}
