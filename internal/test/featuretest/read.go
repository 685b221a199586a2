package featuretest

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// Read is what a feature makes of a route of the Ingress default/web, and what it
// reports of it: for tests that try many values. Annotations are named without
// their prefix.
func Read(f feature.Feature, annotations, keys map[string]string, objects feature.Objects) (model.Route, []feature.Problem) {
	whole := map[string]string{}
	for name, value := range annotations {
		whole[prefix+"/"+name] = value
	}
	in := newInput([]feature.Feature{f}, settings{annotations: whole, keys: keys}, objects)
	route, report := routeOf(f, in)
	return *route, append(in.Problems(), report.Problems...)
}
