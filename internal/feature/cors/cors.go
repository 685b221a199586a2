// Package cors declares to browsers which other sites may use a route, and answers
// their preflight requests.
package cors

import (
	"embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/prediction"
)

const (
	name      = "cors"
	maxLength = 4000 // bytes of a list of methods or headers
)

//go:embed *.lua
var lua embed.FS

var (
	enable = feature.Setting[bool]{
		Annotation: "enable-cors", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Adds CORS headers to responses, and answers OPTIONS requests with 204.",
	}
	allowOrigin = feature.Setting[origins]{
		Annotation: "cors-allow-origin", Default: origins{any: true}, Parse: parseOrigins, Risk: feature.Medium,
		Doc: "The allowed origins, separated by commas. An origin is scheme://host or scheme://host:port. " +
			"In the host, *. at the start matches one label. * allows all origins. null is allowed too.",
	}
	allowMethods = feature.Setting[string]{
		Annotation: "cors-allow-methods", Default: "GET, PUT, POST, DELETE, PATCH, OPTIONS", Risk: feature.Medium,
		Parse: listed(`^[A-Za-z, ]+$`, "must consist of letters, commas and spaces"),
		Doc:   "The value of Access-Control-Allow-Methods.",
	}
	allowHeaders = feature.Setting[string]{
		Annotation: "cors-allow-headers", Risk: feature.Medium,
		Default: "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization",
		Parse:   listed(`^[A-Za-z0-9_, -]+$`, "must consist of letters, digits, - and _, commas and spaces"),
		Doc:     "The value of Access-Control-Allow-Headers.",
	}
	allowCredentials = feature.Setting[bool]{
		Annotation: "cors-allow-credentials", Default: true, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Adds the header Access-Control-Allow-Credentials.",
	}
	exposeHeaders = feature.Setting[string]{
		Annotation: "cors-expose-headers", Risk: feature.Medium,
		Parse: listed(`^(?:[A-Za-z0-9_-]+|\*)(?:[, ]+(?:[A-Za-z0-9_-]+|\*))*[, ]*$`,
			"must be names of letters, digits, - and _, or *, separated by commas or spaces"),
		Doc: "The value of Access-Control-Expose-Headers.",
	}
	maxAge = feature.Setting[int]{
		Annotation: "cors-max-age", Default: 1728000, Parse: feature.Int(math.MinInt32, math.MaxInt32), Risk: feature.Low,
		Doc: "The number of seconds for which browsers may cache the answer to a preflight request.",
	}
)

// Feature is enable-cors.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Cross-origin resource sharing: declares to browsers which origins may use a route.",
		Settings: []feature.AnySetting{
			enable, allowOrigin, allowMethods, allowHeaders, allowCredentials, exposeHeaders, maxAge,
		},
		Route:   route,
		Predict: prediction.ByPhase{prediction.RoutePhase: predict},
		Lua:     lua,
	}
}

// policy is what cors.lua reads of a route.
type policy struct {
	// Any allows all origins.
	Any bool `json:"any,omitempty"`
	// Exact are allowed origins, in lower case.
	Exact map[string]bool `json:"exact,omitempty"`
	Below []below         `json:"below,omitempty"`
	// Headers are those that an allowed origin gets besides itself.
	Headers [][2]string `json:"headers"`
}

// below allows the origins that have one label between Scheme and Rest, in
// lower case: "https://" and ".example.com:8443".
type below struct {
	Scheme string `json:"scheme"`
	Rest   string `json:"rest"`
}

func route(v feature.Values, out *feature.RouteOut) {
	on, from := enable.Get(v), allowOrigin.Get(v)
	p := policy{Any: from.any, Headers: [][2]string{
		{"Access-Control-Allow-Methods", allowMethods.Get(v)},
		{"Access-Control-Allow-Headers", allowHeaders.Get(v)},
		{"Access-Control-Max-Age", strconv.Itoa(maxAge.Get(v))},
	}}
	if allowCredentials.Get(v) {
		p.Headers = append(p.Headers, [2]string{"Access-Control-Allow-Credentials", "true"})
	}
	if exposed := exposeHeaders.Get(v); exposed != "" {
		p.Headers = append(p.Headers, [2]string{"Access-Control-Expose-Headers", exposed})
	}
	if from.bad != "" {
		out.Warn(allowOrigin, finding.InvalidValue, from.bad, "it allows no origin")
	}
	if !from.any {
		p.Exact, p.Below = from.exact, from.below
	}
	if !on || !from.any && len(from.exact)+len(from.below) == 0 {
		return
	}
	feature.Add(out.Route, name, p)
	out.Route.Variant.HeaderFilter = true
}

// listed returns a parser of the value of a header with a list.
func listed(expression, must string) func(string) (string, error) {
	return feature.Matching(expression, maxLength, fmt.Sprintf("%s, up to %d bytes", must, maxLength))
}

// predict is cors.lua's function rewrite in Go.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	if q.Method != "OPTIONS" || !p.allows(strings.Join(q.Headers["Origin"], ", ")) {
		return prediction.Answer{}
	}
	return prediction.Answer{Status: 204, Why: "enable-cors answers OPTIONS requests from an allowed origin"}
}
