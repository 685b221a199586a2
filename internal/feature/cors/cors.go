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
	all       = "*"
)

//go:embed *.lua
var lua embed.FS

var (
	enable = feature.Setting[bool]{
		Annotation: "enable-cors", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Adds CORS headers to responses, and answers OPTIONS requests with 204.",
	}
	allowOrigin = feature.Setting[origins]{
		Annotation: "cors-allow-origin", Needs: feature.NeedsTrue(enable), Default: origins{any: true}, Parse: parseOrigins, Risk: feature.Medium,
		Doc: "The allowed origins, separated by commas. An origin is scheme://host or scheme://host:port. " +
			"In the host, *. at the start matches one label. * allows all origins. null is allowed too.",
	}
	allowMethods = feature.Setting[string]{
		Annotation: "cors-allow-methods", Needs: feature.NeedsTrue(enable), Default: "GET, PUT, POST, DELETE, PATCH, OPTIONS", Risk: feature.Medium,
		Parse: listed(`^(?:[A-Za-z, ]+|\*)$`, "must consist of letters, commas and spaces, or be *"),
		Doc:   "The value of Access-Control-Allow-Methods. * stands for all, for requests without credentials.",
	}
	allowHeaders = feature.Setting[string]{
		Annotation: "cors-allow-headers", Needs: feature.NeedsTrue(enable), Risk: feature.Medium,
		Default: "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization",
		Parse:   listed(`^(?:[A-Za-z0-9_, -]+|\*)$`, "must consist of letters, digits, - and _, commas and spaces, or be *"),
		Doc:     "The value of Access-Control-Allow-Headers. * stands for all but Authorization, for requests without credentials.",
	}
	reflect = feature.Setting[bool]{
		Annotation: "cors-reflect-requested", Needs: feature.NeedsTrue(enable), Parse: feature.Bool, Risk: feature.Medium,
		Doc: "With * in cors-allow-methods or cors-allow-headers, answers to preflight requests list the method or the headers that the browser asks for. So all are allowed in requests with credentials too.",
	}
	allowCredentials = feature.Setting[bool]{
		Annotation: "cors-allow-credentials", Needs: feature.NeedsTrue(enable), Default: true, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Adds the header Access-Control-Allow-Credentials.",
	}
	exposeHeaders = feature.Setting[string]{
		Annotation: "cors-expose-headers", Needs: feature.NeedsTrue(enable), Risk: feature.Medium,
		Parse: listed(`^(?:[A-Za-z0-9_-]+|\*)(?:[, ]+(?:[A-Za-z0-9_-]+|\*))*[, ]*$`,
			"must be names of letters, digits, - and _, or *, separated by commas or spaces"),
		Doc: "The value of Access-Control-Expose-Headers.",
	}
	maxAge = feature.Setting[int]{
		Annotation: "cors-max-age", Needs: feature.NeedsTrue(enable), Default: 1728000, Parse: feature.Int(math.MinInt32, math.MaxInt32), Risk: feature.Low,
		Doc: "The number of seconds for which browsers may cache the answer to a preflight request.",
	}
)

// Feature is enable-cors.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Cross-origin resource sharing: declares to browsers which origins may use a route.",
		Settings: []feature.AnySetting{
			enable, allowOrigin, allowMethods, allowHeaders, reflect, allowCredentials, exposeHeaders, maxAge,
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
	// ReflectMethods and ReflectHeaders have preflight requests answered with what they ask for.
	ReflectMethods bool `json:"reflect_methods,omitempty"`
	ReflectHeaders bool `json:"reflect_headers,omitempty"`
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
	p.ReflectMethods = reflect.Get(v) && allowMethods.Get(v) == all
	p.ReflectHeaders = reflect.Get(v) && allowHeaders.Get(v) == all
	for _, s := range []feature.Setting[string]{allowMethods, allowHeaders} {
		if s.Get(v) == all && allowCredentials.Get(v) && !reflect.Get(v) {
			out.Warn(s, finding.Unexpected, "browsers take * for all only in requests without credentials, and never for the header Authorization, and cors-allow-credentials is true",
				"requests with credentials are not allowed by it: list the names, or set "+reflect.Annotation+`: "true"`)
		}
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
