package build

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// load reads the certificate in a Secret.
func (b *Builder) load(v View, name types.NamespacedName) (parsedCertificate, *refusal) {
	secret := v.Secret(name)
	if secret == nil {
		delete(b.certificates, name)
		delete(b.completed, name)
		return parsedCertificate{}, &refusal{finding.MissingObject, fmt.Sprintf("Secret %s does not exist", feature.Shorten(name.Name))}
	}
	remembered := b.certificates[name]
	parsed := remembered.get(secret, func(secret *corev1.Secret) parsedCertificate {
		parsed := parseCertificate(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if parsed.certificate != nil {
			parsed.certificate.Secret = name.String()
		}
		return parsed
	})
	b.certificates[name] = remembered
	if parsed.problem != "" {
		return parsedCertificate{}, &refusal{finding.BadCertificate, fmt.Sprintf("Secret %s: %s", feature.Shorten(name.Name), parsed.problem)}
	}
	fetched := v.Issuers(parsed.issuerURL)
	if parsed.issuerURL == "" || fetched == nil {
		delete(b.completed, name)
		return parsed, nil
	}
	completed := b.completed[name]
	parsed = completed.get(completion{secret, fetched}, func(completion) parsedCertificate { return parsed.complete(fetched) })
	b.completed[name] = completed
	return parsed, nil
}

// DefaultCertificate builds the certificate that is shown where no other is. It
// is nil where the administrator names none that can be used: then one that
// Headgate makes takes its place.
func (b *Builder) DefaultCertificate(v View) (*model.Certificate, []finding.Finding) {
	name := v.DefaultCertificate()
	if name.Name == "" {
		return nil, nil
	}
	parsed, refused := b.load(v, name)
	tell := func(code finding.Code, message, effect string) []finding.Finding {
		return []finding.Finding{{
			Object: "secret/" + name.String(), Field: "--default-ssl-certificate", Code: code, Message: message, Effect: effect,
		}}
	}
	if refused != nil {
		return nil, tell(refused.code, refused.message, "a certificate that nobody trusts is shown where no other fits")
	}
	if parsed.incomplete != "" {
		return parsed.certificate, tell(finding.IncompleteChain, parsed.incomplete, incompleteEffect)
	}
	return parsed.certificate, nil
}
