package certificate

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/guard"
	"github.com/headgate/headgate/internal/model"
)

// Reading a Secret holds up all others, so its parts are bounded before they
// are parsed.
const (
	maxChainBytes   = 64 << 10
	maxCertificates = 16
	maxKeyBytes     = 16 << 10
	// maxKeyDER is a bit more than an RSA key of 8192 bits has.
	maxKeyDER = 5 << 10
)

// A Parsed is what a TLS Secret holds, or why it can't be used.
type Parsed struct {
	// Certificate is nil where there is a problem.
	Certificate *model.Certificate
	// What the first certificate is for. An x509.Certificate takes 1.4 KB even where it is empty.
	names      []string
	addresses  []string
	commonName string
	hasSAN     bool
	// issuerURL is where the last certificate says that its issuer's is, empty
	// for nowhere and for a root.
	issuerURL string
	// alone is set where no issuer's certificate stands behind the first one.
	alone   bool
	problem string
	// Incomplete says why the chain is not complete, empty if it is or may be.
	Incomplete string
}

// parse reads tls.crt and tls.key. Chain and key are written again,
// so that equal certificates have equal bytes regardless of the text around them.
// Problems never quote the key. Whether the certificate has expired is not
// looked at: an expired one is still served.
func parse(crt, key []byte) Parsed {
	switch {
	case len(crt) > maxChainBytes:
		return Parsed{problem: fmt.Sprintf("tls.crt has %d bytes: at most %d are allowed", len(crt), maxChainBytes)}
	case len(key) > maxKeyBytes:
		return Parsed{problem: fmt.Sprintf("tls.key has %d bytes: at most %d are allowed", len(key), maxKeyBytes)}
	}
	chain := normalise(crt, func(kind string) bool { return kind == "CERTIFICATE" }, false)
	if len(chain) == 0 {
		return Parsed{problem: "tls.crt contains no PEM certificate"}
	}
	private := normalise(key, func(kind string) bool { return kind == "PRIVATE KEY" || strings.HasSuffix(kind, " PRIVATE KEY") }, true)
	if len(private) == 0 {
		return Parsed{problem: "tls.key contains no PEM private key"}
	}
	first, _ := pem.Decode(chain)
	leaf, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return Parsed{problem: "the first certificate in tls.crt can't be read"}
	}
	last, n := lastOf(chain)
	if problem := pairProblem(leaf, n, chain, private); problem != "" {
		return Parsed{problem: problem}
	}
	return Parsed{
		Certificate: newCertificate(chain, private),
		issuerURL:   issuerURLOf(last),
		alone:       n == 1,
		names:       leaf.DNSNames,
		addresses:   texts(leaf.IPAddresses),
		commonName:  strings.Clone(leaf.Subject.CommonName),
		hasSAN:      hasSAN(leaf),
	}
}

// pairProblem says why a chain of n certificates and a key can't be shown. The
// public key is checked before the private one is parsed, which takes long for a
// long one, as each handshake with it would.
func pairProblem(leaf *x509.Certificate, n int, chain, private []byte) string {
	if n > maxCertificates {
		return fmt.Sprintf("tls.crt contains %d certificates: at most %d are allowed", n, maxCertificates)
	}
	if err := guard.CheckKey(leaf.PublicKey); err != nil {
		return "the first certificate in tls.crt: " + err.Error()
	}
	block, _ := pem.Decode(private)
	if len(block.Bytes) > maxKeyDER {
		return fmt.Sprintf("the key in tls.key has %d bytes: at most %d are allowed", len(block.Bytes), maxKeyDER)
	}
	if key := parseKey(block.Bytes); key == nil || !key.Equal(leaf.PublicKey) {
		return keyProblem(chain, key)
	}
	return ""
}

// A publicKey is any of the standard library's.
type publicKey interface{ Equal(crypto.PublicKey) bool }

// parseKey is the public half of a private key, nil if it can't be read.
func parseKey(der []byte) publicKey {
	var private any
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		private = key
	} else if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		private = key
	} else if key, err := x509.ParseECPrivateKey(der); err == nil {
		private = key
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil
	}
	public, _ := signer.Public().(publicKey)
	return public
}

func newCertificate(chain, private []byte) *model.Certificate {
	sum := sha256.New()
	sum.Write(chain)
	sum.Write(private)
	return &model.Certificate{Hash: hex.EncodeToString(sum.Sum(nil)[:16]), Chain: chain, Key: private}
}

// keyProblem says why a key, nil if it can't be read, is not that of a chain.
// NGINX shows the first certificate as the server's own, and the others in their
// order.
func keyProblem(chain []byte, key publicKey) string {
	for n := 1; key != nil && len(chain) > 0; n++ {
		var block *pem.Block
		block, chain = pem.Decode(chain)
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && key.Equal(c.PublicKey) {
			return fmt.Sprintf("tls.key is the key of certificate %d in tls.crt: this certificate must come first, followed by that of its issuer", n)
		}
	}
	return "tls.key is not the key of the first certificate in tls.crt, or can't be read"
}

// normalise keeps the PEM blocks of the wanted kind, or only the first one. It returns data itself
// where that is the same, as it mostly is: the Secret stays in memory too.
func normalise(data []byte, wanted func(kind string) bool, onlyFirst bool) []byte {
	var out []byte
	for rest := data; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
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
	if bytes.Equal(out, data) {
		return data
	}
	return out
}

func hasSAN(c *x509.Certificate) bool {
	subjectAltName := asn1.ObjectIdentifier{2, 5, 29, 17}
	return slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(subjectAltName) })
}

// texts is generic since this package may not import net, whose addresses they are.
func texts[T fmt.Stringer](all []T) (list []string) {
	for _, one := range all {
		list = append(list, one.String())
	}
	return list
}

// Covers reports whether the certificate's alternative names hold the host's. A
// wildcard stands for one label; a wildcard host needs the same wildcard.
func (p Parsed) Covers(name string) bool {
	leaf := x509.Certificate{DNSNames: p.names}
	return leaf.VerifyHostname(name) == nil || slices.Contains(p.addresses, name)
}

// maxNames is how many names of a certificate DNSNames returns. Authorities issue at most 100.
const maxNames = 100

// DNSNames are the names that the certificate is for, in lower case, at most maxNames.
func (p Parsed) DNSNames() []string {
	names := slices.Clone(p.names[:min(len(p.names), maxNames)])
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CommonNameCovers is the old rule, for certificates without alternative names.
func (p Parsed) CommonNameCovers(name string) bool {
	if p.hasSAN || p.commonName == "" {
		return false
	}
	old := x509.Certificate{DNSNames: []string{p.commonName}}
	return old.VerifyHostname(name) == nil
}

// Names lists what the certificate is for, for findings.
func (p Parsed) Names() string {
	names := slices.Concat(p.names, p.addresses)
	if !p.hasSAN && p.commonName != "" {
		names = append(names, p.commonName)
	}
	if len(names) == 0 {
		return "no name"
	}
	return finding.ShortenList(names)
}
