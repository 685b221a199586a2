package build

import (
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Staple builds the OCSP answer on the certificate of that hash. It is not
// found where there is none to show.
func (b *Builder) Staple(certificate string, v View) (s model.OCSPResponse, found bool, fs []finding.Finding) {
	staple := v.OCSPResponse(certificate)
	if staple == nil {
		return model.OCSPResponse{}, false, nil
	}
	found = len(staple.Response) > 0
	if staple.Problem != "" {
		effect := "the certificate is shown without an OCSP answer"
		if found {
			effect = "the last OCSP answer is shown as long as it holds"
		}
		fs = append(fs, finding.Finding{
			Object: "secret/" + staple.Secret, Field: "tls.crt", Code: finding.NoOCSPResponse, Message: staple.Problem, Effect: effect,
		})
	}
	return model.OCSPResponse{Certificate: certificate, Response: staple.Response, Until: staple.Until}, found, fs
}
