package headgatetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// A KeyPair is a self-signed certificate with its key, as PEM.
type KeyPair struct {
	Certificate, Key string
}

// NewKeyPair makes a certificate for names. Its common name is cn.
func NewKeyPair(t testing.TB, cn string, names ...string) KeyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: cn}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return KeyPair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}

// TLSSecret is a Secret with a certificate.
func TLSSecret(name string, pair KeyPair) string {
	indent := func(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") }
	return "---\nkind: Secret\napiVersion: v1\nmetadata: {name: " + name + "}\ntype: kubernetes.io/tls\nstringData:\n" +
		"  tls.crt: |\n    " + indent(pair.Certificate) + "\n  tls.key: |\n    " + indent(pair.Key) + "\n"
}

// WithTLS puts a section tls, of entries "SECRET HOST…", under the spec at the
// end of an Ingress. Without a host the entry has none; "-" stands for no Secret.
func WithTLS(ingress string, entries ...string) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(ingress, "\n") + "\n  tls:\n")
	for _, entry := range entries {
		words := strings.Fields(entry)
		b.WriteString("  - hosts: [")
		for _, host := range words[1:] {
			b.WriteString("'" + host + "', ")
		}
		b.WriteString("]\n")
		if words[0] != "-" {
			b.WriteString("    secretName: " + words[0] + "\n")
		}
	}
	return b.String()
}
