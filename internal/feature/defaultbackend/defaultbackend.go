// Package defaultbackend names a Service that answers while a route's own has
// no endpoint.
package defaultbackend

import (
	"errors"
	"regexp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var defaultBackend = feature.Setting[string]{
	Annotation: "default-backend", Parse: parse, Risk: feature.Low,
	Doc: "A Service in the namespace of the Ingress that answers, on its first port, while the Service of a path has no endpoints. " +
		"The headers X-Code, X-Format, X-Namespace, X-Ingress-Name, X-Service-Name and X-Service-Port describe the request that it answers.",
}

// Feature is default-backend.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "default_backend",
		Doc:      "Sets the fallback backend: it answers while the backend of a route has no endpoints.",
		Settings: []feature.Declared{defaultBackend},
		Route:    func(r *feature.Reader, _ *model.Route) { defaultBackend.Get(r) },
		Fallback: defaultBackend.Get,
		Causes:   map[feature.Effect]string{feature.FallbackBackend: defaultBackend.Annotation},
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// parse takes no name at all for no annotation.
func parse(text string) (string, error) {
	if text != "" && !label.MatchString(text) {
		return "", errors.New("allowed is the name of a Service")
	}
	return text, nil
}
