package build

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// A parsedCertificate is what a TLS Secret holds, or why it can't be used.
type parsedCertificate struct {
	certificate *model.Certificate
	// leaf holds only the names: the rest of it would stay in memory for
	// nothing.
	leaf    *x509.Certificate
	hasSAN  bool
	problem string
}

// parseCertificate reads tls.crt and tls.key. Chain and key are written anew,
// so that equal certificates have equal bytes whatever stood around them.
// Problems never quote the key. Whether the certificate has expired is not
// looked at: an expired one is still served.
func parseCertificate(crt, key []byte) parsedCertificate {
	chain := normalise(crt, func(kind string) bool { return kind == "CERTIFICATE" }, false)
	if len(chain) == 0 {
		return parsedCertificate{problem: "tls.crt holds no PEM certificate"}
	}
	private := normalise(key, func(kind string) bool { return kind == "PRIVATE KEY" || strings.HasSuffix(kind, " PRIVATE KEY") }, true)
	if len(private) == 0 {
		return parsedCertificate{problem: "tls.key holds no PEM private key"}
	}
	first, _ := pem.Decode(chain)
	leaf, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return parsedCertificate{problem: "the first certificate in tls.crt can't be read"}
	}
	if _, err := tls.X509KeyPair(chain, private); err != nil {
		return parsedCertificate{problem: "tls.key is not the key of the first certificate in tls.crt, or can't be read"}
	}
	sum := sha256.New()
	sum.Write(chain)
	sum.Write(private)
	return parsedCertificate{
		certificate: &model.Certificate{
			Hash: hex.EncodeToString(sum.Sum(nil)[:16]), Chain: chain, Key: private,
		},
		leaf: &x509.Certificate{
			DNSNames: leaf.DNSNames, IPAddresses: leaf.IPAddresses,
			Subject: pkix.Name{CommonName: strings.Clone(leaf.Subject.CommonName)},
		},
		hasSAN: hasSAN(leaf),
	}
}

// normalise keeps the PEM blocks of the wanted kind, or only the first one.
func normalise(data []byte, wanted func(kind string) bool, onlyFirst bool) []byte {
	var out []byte
	for len(data) > 0 {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if !wanted(block.Type) {
			continue
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		if onlyFirst {
			break
		}
	}
	return out
}

func hasSAN(c *x509.Certificate) bool {
	subjectAltName := asn1.ObjectIdentifier{2, 5, 29, 17}
	return slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(subjectAltName) })
}

// covers tells whether the certificate's alternative names hold the host's. A
// wildcard stands for one label; a wildcard host needs the same wildcard.
func (p parsedCertificate) covers(name string) bool {
	return p.leaf.VerifyHostname(name) == nil
}

// commonNameCovers is the old rule, for certificates without alternative
// names.
func (p parsedCertificate) commonNameCovers(name string) bool {
	if p.hasSAN || p.leaf.Subject.CommonName == "" {
		return false
	}
	old := x509.Certificate{DNSNames: []string{p.leaf.Subject.CommonName}}
	return old.VerifyHostname(name) == nil
}

// names lists what the certificate is for, for findings.
func (p parsedCertificate) names() string {
	names := slices.Clone(p.leaf.DNSNames)
	for _, ip := range p.leaf.IPAddresses {
		names = append(names, ip.String())
	}
	if !p.hasSAN && p.leaf.Subject.CommonName != "" {
		names = append(names, p.leaf.Subject.CommonName)
	}
	if len(names) == 0 {
		return "no name"
	}
	return shorten(strings.Join(names, ", "))
}
