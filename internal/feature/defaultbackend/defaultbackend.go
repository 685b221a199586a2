// Package defaultbackend has other backends respond instead of a route's own: while that
// has no endpoint, and instead of errors.
package defaultbackend

import (
	"embed"
	"errors"
	"regexp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

const name = "default_backend"

//go:embed *.lua
var lua embed.FS

var defaultBackend = feature.Setting[feature.ObjectName]{
	Annotation: "default-backend", Parse: parse, Refers: feature.Service, Risk: feature.Low,
	Doc: "A Service in the namespace of the Ingress. Its first port gets requests while the Service of a path has no endpoints, and instead of responses with the statuses of custom-http-errors. " +
		"The headers X-Code, X-Format, X-Namespace, X-Ingress-Name, X-Service-Name and X-Service-Port describe the request that it answers.",
}

// Feature is default-backend and custom-http-errors.
func Feature() feature.Feature {
	return feature.Feature{
		Name:       name,
		Doc:        "Sets the fallback backend: it answers while the backend of a route has no endpoints, and instead of errors.",
		Settings:   []feature.AnySetting{defaultBackend, customErrors, everyErrors, ownOnly},
		Route:      route,
		Directives: directive.List{catches, catchesOwn},
		Replaced:   replaced,
		Part:       part,
		Occasional: []map[string]string{
			{customErrors.Annotation: "404"}, {customErrors.Annotation: "503"}, {customErrors.Annotation: "404,503"}, {customErrors.Annotation: "502,503,504"},
			{customErrors.Annotation: "404,500,502,503,504"},
		},
		Causes: map[feature.Effect]string{feature.FallbackBackend: defaultBackend.Annotation, feature.ErrorPage: customErrors.Annotation},
		Lua:    lua,
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// parse takes an empty text for no annotation.
func parse(text string) (feature.ObjectName, error) {
	if text != "" && !label.MatchString(text) {
		return feature.ObjectName{}, errors.New("must be the name of a Service in the namespace of the Ingress: lower-case letters, digits and -")
	}
	return feature.ObjectName{Name: text}, nil
}

func route(v feature.Values, out *feature.RouteOut) {
	fallback := ""
	if service := defaultBackend.Get(v).Name; service != "" {
		fallback = model.BackendKey(v.Origin().Namespace, service, model.FirstPort)
	}
	// Where the default backend itself answers, or the built-in one, no other stands in for it. The
	// default backend is asked again for the page of an error that it answers, as in ingress-nginx.
	byDefault := out.Route.Default || out.Route.Backend == ""
	replaces := routeErrors(v, out, byDefault && fallback == "" && out.Host.DefaultBackend == "")
	if !byDefault || replaces {
		out.Route.Fallback = fallback
	}
}
