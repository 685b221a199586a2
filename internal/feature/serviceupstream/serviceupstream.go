// Package serviceupstream leaves the choice of an endpoint to the Service.
package serviceupstream

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var serviceUpstream = feature.Setting[bool]{
	Annotation: "service-upstream", Key: "service-upstream", Parse: feature.Bool, Risk: feature.Low,
	Doc: "Sends requests to the cluster IP of the Service instead of its endpoints. A headless Service is served " +
		"by its endpoints. If several Ingresses use a port of a Service, the oldest one decides.",
}

// Feature is service-upstream.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "service_upstream",
		Doc:      "Sends requests to the cluster IP of the Service instead of its endpoints.",
		Settings: []feature.Declared{serviceUpstream},
		Backend: func(r *feature.Reader, b *model.Balancing) {
			b.ServiceAddress = serviceUpstream.Get(r)
		},
	}
}
