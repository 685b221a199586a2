package build

import (
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// OCSPResponse builds the OCSP response on the certificate of that hash. It is not
// found where there is none to show.
func (b *Builder) OCSPResponse(certificate string, v View) (s model.OCSPResponse, found bool, fs []finding.Finding) {
	response := v.OCSPResponse(certificate)
	if response == nil {
		return model.OCSPResponse{}, false, nil
	}
	found = len(response.Response) > 0
	if response.Problem != "" {
		effect := "the certificate is shown without an OCSP response"
		if found {
			effect = "the last OCSP response is shown as long as it holds"
		}
		fs = append(fs, finding.Finding{
			Object: "secret/" + response.Secret, Field: "tls.crt", Code: finding.NoOCSPResponse, Message: response.Problem, Effect: effect,
		})
	}
	return model.OCSPResponse{Certificate: certificate, Response: response.Response, Until: response.Until}, found, fs
}
