// Package stapling switches OCSP stapling on: certificates are sent with an OCSP
// response, which proves to clients that they are not revoked.
package stapling

import "github.com/headgate/headgate/internal/feature"

var enabled = feature.Setting[bool]{
	Key: "enable-ocsp", Parse: feature.Bool, Scope: feature.ScopeProcess,
	Doc: "Staples OCSP responses to certificates. The responses are fetched from the OCSP responder whose URL is in the certificate.",
}

// Feature switches stapling on.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "stapling",
		Doc:      "OCSP stapling.",
		Settings: []feature.AnySetting{enabled},
		Process:  func(v feature.Values, out *feature.ProcessOut) { out.Process.Stapling = enabled.Get(v) },
	}
}
