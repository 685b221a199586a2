package featuretest

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// Read is what a feature makes of a route of the Ingress default/web, and the
// reader with what it told: for tests that try many values. Annotations are
// named without their prefix.
func Read(f feature.Feature, annotations, keys map[string]string, objects feature.Objects) (model.Route, *feature.Reader) {
	whole := map[string]string{}
	for name, value := range annotations {
		whole[prefix+"/"+name] = value
	}
	config, _ := feature.NewConfig([]feature.Feature{f}, keys)
	ingress := model.Origin{Namespace: "default", Ingress: "web"}
	reader := feature.NewReader(prefix, whole, config).Of(ingress, objects)
	route := model.Route{Origin: ingress, Kind: model.Prefix, Path: "/"}
	f.Route(reader, &route)
	return route, reader
}
