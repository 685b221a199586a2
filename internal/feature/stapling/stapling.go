// Package stapling switches on that certificates are shown with OCSP answers,
// by which clients know that they are not revoked.
package stapling

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var enabled = feature.Setting[bool]{
	Key: "enable-ocsp", Parse: feature.Bool,
	Doc: "Shows certificates with an OCSP answer, fetched from the responder that they name.",
}

// Feature switches stapling on.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "stapling",
		Doc:      "Shows certificates with OCSP answers.",
		Settings: []feature.Declared{enabled},
		Process:  func(r *feature.Reader, p *model.Process) { p.Stapling = enabled.Get(r) },
	}
}
