// Package satisfy decides whether a request must pass all auth checks of its route
// or one of them. Each auth check is a feature of its own, with a function
// authenticate in its Lua.
package satisfy

import "github.com/headgate/headgate/internal/feature"

// anyOf is the value that is not the default.
const anyOf = "any"

var satisfy = feature.Setting[string]{
	Annotation: "satisfy", Parse: feature.Word("all", anyOf), Risk: feature.Low,
	Doc: "any: one of the auth checks (auth-type; auth-url or global-auth-url) must succeed. all (the default): all of them must succeed.",
}

// Feature is satisfy.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "satisfy",
		Doc:      "Combines authentication methods.",
		Settings: []feature.AnySetting{satisfy},
		Route: func(v feature.Values, out *feature.RouteOut) {
			out.Route.SatisfyAny = satisfy.Get(v) == anyOf
		},
		Causes: map[feature.Effect]string{feature.AnyAuth: satisfy.Annotation},
	}
}
