// Package defaultbackend names a Service that answers while a route's own has
// no endpoint.
package defaultbackend

import (
	"errors"
	"regexp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var defaultBackend = feature.Setting[feature.ObjectName]{
	Annotation: "default-backend", Parse: parse, Refers: feature.Service, Risk: feature.Low,
	Doc: "A Service in the namespace of the Ingress. Its first port gets requests while the Service of a path has no endpoints. " +
		"The headers X-Code, X-Format, X-Namespace, X-Ingress-Name, X-Service-Name and X-Service-Port describe the request that it answers.",
}

// Feature is default-backend.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "default_backend",
		Doc:      "Sets the fallback backend: it answers while the backend of a route has no endpoints.",
		Settings: []feature.AnySetting{defaultBackend},
		Route:    route,
		Causes:   map[feature.Effect]string{feature.FallbackBackend: defaultBackend.Annotation},
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// parse takes an empty text for no annotation.
func parse(text string) (feature.ObjectName, error) {
	if text != "" && !label.MatchString(text) {
		return feature.ObjectName{}, errors.New("must be the name of a Service")
	}
	return feature.ObjectName{Name: text}, nil
}

// route has no effect where the default backend itself answers, or no backend.
func route(v feature.Values, out *feature.RouteOut) {
	if name := defaultBackend.Get(v).Name; name != "" && out.Route.Backend != "" && !out.Route.Default {
		out.Route.Fallback = model.BackendKey(v.Origin().Namespace, name, model.FirstPort)
	}
}
