package build

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// Unit builds what a key of a store names. The key must be of a kind that is
// built by its key (unit.Traits).
func (b *Builder) Unit(key unit.Key, v View) (built unit.Built, fs []finding.Finding) {
	built.Key = key
	found := true
	switch key.Kind {
	case unit.Globals:
		built.Model, fs = b.Globals(v)
	case unit.DefaultCertificate:
		var shown *model.Certificate
		if shown, fs = b.DefaultCertificate(v); shown != nil {
			built.Model = *shown
		}
	case unit.OCSPResponse:
		built.Model, found, fs = b.OCSPResponse(key.Name, v)
	case unit.Backend:
		built.Model, found, fs = b.Backend(key.Name, v)
	case unit.Host:
		built.Model, found, fs = b.Host(key.Name, v)
	case unit.Name:
		var shown *model.Certificate
		if built.Model, shown, found, fs = b.Name(key.Name, v); shown != nil {
			built.Certificates = []model.Certificate{*shown}
		}
	case unit.Patterns:
		built.Model, built.Certificates, found, fs = b.NamePatterns(v)
	case unit.Refusal:
		fs = refusal(key.Name, v)
	case unit.Stream:
		built.Model, found, fs = b.Stream(key.Name, v)
	default:
		panic(fmt.Sprintf("build: units of the kind %s are not built by their key", key.Kind))
	}
	if !found {
		built.Model = nil
	}
	return built, fs
}

// DefaultCertificate builds the certificate that is shown where no other is. It
// is nil where the administrator names none that can be used: then one that
// Headgate makes takes its place.
func (b *Builder) DefaultCertificate(v View) (*model.Certificate, []finding.Finding) {
	name := v.DefaultCertificate()
	if name.Name == "" {
		return nil, nil
	}
	parsed, refused := b.certificates.Load(v, name)
	report := func(code finding.Code, message, effect string) []finding.Finding {
		return []finding.Finding{{
			Object: "secret/" + name.String(), Field: "--default-ssl-certificate", Code: code, Message: message, Effect: effect,
		}}
	}
	if refused != nil {
		return nil, report(refused.Code, refused.Message, "a self-signed certificate is used for names without a certificate")
	}
	if parsed.Incomplete != "" {
		return parsed.Certificate, report(finding.IncompleteChain, parsed.Incomplete, certificate.IncompleteEffect)
	}
	return parsed.Certificate, nil
}

// OCSPResponse builds the OCSP response on the certificate of that hash. It is not
// found where there is none to show.
func (b *Builder) OCSPResponse(certificate string, v View) (s model.OCSPResponse, found bool, fs []finding.Finding) {
	response := v.OCSPResponse(certificate)
	if response == nil {
		return model.OCSPResponse{}, false, nil
	}
	found = len(response.Response) > 0
	if response.Problem != "" {
		effect := "the certificate is served without an OCSP response"
		if found {
			effect = "the last OCSP response is served until it expires"
		}
		fs = append(fs, finding.Finding{
			Object: "secret/" + response.Secret, Field: "tls.crt", Code: finding.NoOCSPResponse, Message: response.Problem, Effect: effect,
		})
	}
	return model.OCSPResponse{Certificate: certificate, Response: response.Response, Until: response.Until}, found, fs
}

// refusal says why the Ingress of that name, "namespace/name", is left out as a
// whole. Without findings it is not.
func refusal(name string, v View) []finding.Finding {
	namespace, name, _ := strings.Cut(name, "/")
	if ing := v.Refused(types.NamespacedName{Namespace: namespace, Name: name}); ing != nil {
		return v.Scope().Findings(ing)
	}
	return nil
}
