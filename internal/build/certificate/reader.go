// Package certificate reads the certificates in TLS Secrets and completes their
// chains.
//
// It knows nothing of Ingresses and hosts, nor of where Secrets and the
// certificates of issuers came from. Whether a certificate has expired is for
// others: it is pure, like package build.
package certificate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/memo"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
)

// A View shows the newest objects.
type View interface {
	// Secret is nil if there is none of that name.
	Secret(types.NamespacedName) *corev1.Secret
	// Issuers are what was fetched from a URL that IssuerURL gave, nil until it
	// was.
	Issuers(url string) *source.Issuers
}

// IncompleteEffect is the effect of a chain that is not complete.
const IncompleteEffect = "the certificate is served without that of its issuer, and some clients reject it"

// A Problem is why a Secret has no certificate to show.
type Problem struct {
	Code    finding.Code
	Message string
}

// A Reader reads certificates. It remembers what it read for as long as the
// objects are the newest. The zero value has read nothing.
type Reader struct {
	parsed memo.Map[types.NamespacedName, *corev1.Secret, Parsed]
	// completed are those whose chains were completed.
	completed memo.Map[types.NamespacedName, completion, Parsed]
}

// Load reads the certificate in a Secret.
func (r *Reader) Load(v View, name types.NamespacedName) (Parsed, *Problem) {
	secret := v.Secret(name)
	if secret == nil {
		r.parsed.Forget(name)
		r.completed.Forget(name)
		return Parsed{}, &Problem{finding.MissingObject, fmt.Sprintf("Secret %s does not exist", finding.Shorten(name.Name))}
	}
	parsed := r.parsed.Get(name, secret, func(secret *corev1.Secret) Parsed {
		parsed := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if parsed.Certificate != nil {
			parsed.Certificate.Secret = name.String()
		}
		return parsed
	})
	if parsed.problem != "" {
		return Parsed{}, &Problem{finding.BadCertificate, fmt.Sprintf("Secret %s: %s", finding.Shorten(name.Name), parsed.problem)}
	}
	fetched := v.Issuers(parsed.issuerURL)
	if parsed.issuerURL == "" || fetched == nil {
		r.completed.Forget(name)
		return parsed, nil
	}
	return r.completed.Get(name, completion{secret, fetched}, func(completion) Parsed { return parsed.complete(fetched) }), nil
}
