// Package serviceupstream leaves the choice of an endpoint to the Service.
package serviceupstream

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var serviceUpstream = feature.Setting[bool]{
	Annotation: "service-upstream", Key: "service-upstream", Parse: feature.Bool, Risk: feature.Low,
	Doc: "Sends requests to the Service's own cluster address in the place of its endpoints. A Service without one is served " +
		"by its endpoints. Of several Ingresses that use a Service's port the oldest decides.",
}

// Feature is service-upstream.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "service_upstream",
		Doc:      "Sends requests to the Service's own address in the place of its endpoints.",
		Settings: []feature.Declared{serviceUpstream},
		Backend: func(r *feature.Reader, b *model.Balancing) {
			b.ServiceAddress = serviceUpstream.Get(r)
		},
	}
}
