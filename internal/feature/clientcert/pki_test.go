package clientcert_test

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/pkitest"
)

// An authority issues clients' certificates.
type authority struct {
	t      *testing.T
	signer *pkitest.Authority
	root   *x509.Certificate
	key    crypto.Signer
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, signer: pkitest.New(t)}
	a.root, a.key = a.signer.Sign(issuer(name), nil, nil)
	return a
}

func issuer(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

// below is an authority that this one has certified.
func (a *authority) below(name string) *authority {
	a.t.Helper()
	b := *a
	b.root, b.key = a.signer.Sign(issuer(name), a.root, a.key)
	return &b
}

// issue makes a client's certificate, which the client sends with those behind it.
func (a *authority) issue(name string, behind ...*authority) *tls.Certificate {
	a.t.Helper()
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{"Tests"}}}, behind...)
}

func (a *authority) sign(template *x509.Certificate, behind ...*authority) *tls.Certificate {
	a.t.Helper()
	leaf, key := a.signer.Sign(template, a.root, a.key)
	chain := [][]byte{leaf.Raw}
	for _, b := range behind {
		chain = append(chain, b.root.Raw)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}
}

// revoke is a revocation list.
func (a *authority) revoke(certificates ...*tls.Certificate) string {
	a.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(24 * time.Hour)}
	for _, c := range certificates {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.Leaf.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.root, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// caSecret is a Secret of authorities and of revocation lists, which may be empty.
func caSecret(name, lists string, authorities ...*authority) string {
	var bundle strings.Builder
	for _, a := range authorities {
		bundle.WriteString(pkitest.PEM(a.root))
	}
	text := "---\nkind: Secret\napiVersion: v1\nmetadata: {name: " + name + "}\nstringData:\n  ca.crt: |\n" + indented(bundle.String())
	if lists != "" {
		text += "  ca.crl: |\n" + indented(lists)
	}
	return text
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}
