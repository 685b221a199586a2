// Package serviceupstream leaves the choice of an endpoint to the Service.
package serviceupstream

import "github.com/headgate/headgate/internal/feature"

var serviceUpstream = feature.Setting[bool]{
	Annotation: "service-upstream", Key: "service-upstream", Parse: feature.Bool, Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
	Doc: "Sends requests to the cluster IP of the Service instead of its endpoints. A headless Service is served " +
		"by its endpoints.",
}

// Feature is service-upstream.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "service_upstream",
		Doc:      "Sends requests to the cluster IP of the Service instead of its endpoints.",
		Settings: []feature.AnySetting{serviceUpstream},
		Backend: func(v feature.Values, out *feature.BackendOut) {
			out.Balancing.ServiceAddress = serviceUpstream.Get(v)
		},
	}
}
