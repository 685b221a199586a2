package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/guard"
	"github.com/headgate/headgate/internal/source"
)

// maxIssuerURL bounds what is taken for a URL.
const maxIssuerURL = 2048

// IssuerURL is where the last certificate in a TLS Secret says that its
// issuer's is available, over http; empty for nowhere and where tls.crt is too
// long to be used.
func IssuerURL(secret *corev1.Secret) string {
	crt := secret.Data[corev1.TLSCertKey]
	if len(crt) > maxChainBytes {
		return ""
	}
	last, _ := lastOf(crt)
	return issuerURLOf(last)
}

// lastOf is the last certificate of a chain, nil if it can't be read, and the
// number of all.
func lastOf(chain []byte) (last *x509.Certificate, n int) {
	var der []byte
	for len(chain) > 0 {
		var block *pem.Block
		if block, chain = pem.Decode(chain); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			der = block.Bytes
			n++
		}
	}
	last, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, n
	}
	return last, n
}

func issuerURLOf(c *x509.Certificate) string {
	if c == nil || isRoot(c) {
		return ""
	}
	i := slices.IndexFunc(c.IssuingCertificateURL, func(url string) bool {
		return strings.HasPrefix(url, "http://") && len(url) <= maxIssuerURL
	})
	if i < 0 {
		return ""
	}
	return strings.Clone(c.IssuingCertificateURL[i])
}

func isRoot(c *x509.Certificate) bool { return bytes.Equal(c.RawSubject, c.RawIssuer) }

type completion struct {
	secret  *corev1.Secret
	issuers *source.Issuers
}

// complete puts fetched certificates behind the chain, as far as each of them
// signed the one before it with a key that does not take long to verify with. A
// root is left out: clients have it, or don't trust it.
func (p Parsed) complete(fetched *source.Issuers) Parsed {
	last, _ := lastOf(p.Certificate.Chain)
	chain, reason := p.Certificate.Chain, fetched.Problem
	for i, der := range fetched.Chain {
		issuer, err := x509.ParseCertificate(der)
		if err != nil || guard.CheckKey(issuer.PublicKey) != nil || last.CheckSignatureFrom(issuer) != nil {
			if i == 0 {
				reason = "the certificate at this URL is not that of the issuer"
			}
			break
		}
		if isRoot(issuer) {
			break
		}
		chain = append(slices.Clip(chain), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
		last = issuer
	}
	// What is not available of a chain that has issuers may well be the root.
	if p.alone && reason != "" {
		p.Incomplete = fmt.Sprintf("tls.crt lacks the certificate of the issuer, which could not be fetched from %s: %s", finding.Shorten(p.issuerURL), reason)
	}
	if len(chain) > len(p.Certificate.Chain) {
		secret := p.Certificate.Secret
		p.Certificate = newCertificate(chain, p.Certificate.Key)
		p.Certificate.Secret = secret
	}
	return p
}
