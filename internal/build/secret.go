package build

import (
	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

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
