// Package rewrite makes paths regular expressions.
package rewrite

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var useRegex = feature.Setting[bool]{
	Annotation: "use-regex", Parse: feature.Bool, Risk: feature.Low,
	Doc: "Makes the paths of the host regular expressions, without regard to case and bound to the start of a request's path. " +
		"One Ingress with it does so for all Ingresses of the host.",
}

// Feature is use-regex.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "rewrite",
		Doc:      "Makes paths regular expressions.",
		Settings: []feature.Declared{useRegex},
		Route:    func(r *feature.Reader, _ *model.Route) { useRegex.Get(r) },
		Patterns: func(r *feature.Reader, _ string) bool { return useRegex.Get(r) },
	}
}
