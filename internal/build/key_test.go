package build_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// signed makes a certificate of a public key, of which no private one need be
// known.
func signed(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"a.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key, keys()[0])
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TestBoundedPairs: what would keep Headgate or NGINX busy for long is not
// shown, neither for a host nor where no other certificate fits.
func TestBoundedPairs(t *testing.T) {
	pkcs8 := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pemOf("PRIVATE KEY", der)
	}
	p224, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	p521, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	_, edwards, _ := ed25519.GenerateKey(rand.Reader)
	short, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	long := pkitest.LongKey(t)
	ours := pemOf("CERTIFICATE", signed(t, keys()[0].Public()))
	endless := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1<<18, 1), E: 1<<31 - 1}
	for name, c := range map[string]struct {
		crt, key []byte
		reported string
	}{
		"RSA":             {pemOf("CERTIFICATE", signed(t, short.Public())), pkcs8(short), ""},
		"RSA in PKCS#1":   {pemOf("CERTIFICATE", signed(t, short.Public())), pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(short)), ""},
		"P-521":           {pemOf("CERTIFICATE", signed(t, p521.Public())), pkcs8(p521), ""},
		"Ed25519":         {pemOf("CERTIFICATE", signed(t, edwards.Public())), pkcs8(edwards), ""},
		"16 certificates": {bytes.Repeat(ours, 16), pkcs8(keys()[0]), ""},
		"RSA too long": {pemOf("CERTIFICATE", signed(t, long.Public())), pkcs8(long),
			"the first certificate in tls.crt: the key is RSA with "},
		"RSA without end": {pemOf("CERTIFICATE", signed(t, endless)), pkcs8(keys()[0]),
			"the first certificate in tls.crt: the key is RSA with 262145 bits: it must be"},
		"P-224": {pemOf("CERTIFICATE", signed(t, p224.Public())), pkcs8(p224),
			"the first certificate in tls.crt: the key is ECDSA on P-224: it must be"},
		"17 certificates":   {bytes.Repeat(ours, 17), pkcs8(keys()[0]), "tls.crt contains 17 certificates: at most 16 are allowed"},
		"a long tls.crt":    {append(ours, make([]byte, 64<<10)...), pkcs8(keys()[0]), "tls.crt has "},
		"a long tls.key":    {ours, append(pkcs8(keys()[0]), make([]byte, 16<<10)...), "tls.key has "},
		"a long key in it":  {ours, pkcs8(long), "the key in tls.key has "},
		"a key of no use":   {ours, pemOf("PRIVATE KEY", []byte("x")), "tls.key is not the key of the first certificate"},
		"another kind's":    {ours, pkcs8(edwards), "tls.key is not the key of the first certificate"},
		"that of the third": {slices.Concat(ours, ours, pemOf("CERTIFICATE", signed(t, edwards.Public()))), pkcs8(edwards), "tls.key is the key of certificate 3"},
	} {
		t.Run(name, func(t *testing.T) {
			ing := ingressOf(0, 0)
			ing.Spec.Rules[0].Host = "a.example"
			ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "tls"}}
			s := newStore([]metav1.Object{ing, secretOf("tls", string(c.crt), string(c.key))})
			_, certificate, _, fs := newBuilder().Name("a.example", s)
			check := func(about string, shown bool, fs []finding.Finding, prefix string) {
				t.Helper()
				if shown != (c.reported == "") || shown != (len(fs) == 0) {
					t.Errorf("%s: shown %v, findings %v, want %q", about, shown, fs, c.reported)
				}
				for _, f := range fs {
					if f.Code != finding.BadCertificate || !strings.HasPrefix(f.Message, prefix+c.reported) {
						t.Errorf("%s: %v, want %q", about, f, c.reported)
					}
				}
			}
			check("the host's", certificate != nil, fs, "Secret tls: ")
			byDefault := secretOf("default", string(c.crt), string(c.key))
			byDefault.Namespace = "headgate"
			certificate, fs = newBuilder().DefaultCertificate(newStore([]metav1.Object{byDefault}))
			check("the default one", certificate != nil, fs, "Secret default: ")
		})
	}
}

// TestLongIssuer: nothing is verified with a key that takes long.
func TestLongIssuer(t *testing.T) {
	authority, key := pkitest.New(t), pkitest.LongKey(t)
	_, intermediate, its, _ := authority.Good(time.Hour)(big.NewInt(1))
	issuer := authority.SignKey(key, &x509.Certificate{
		Subject: pkix.Name{CommonName: "long"}, IsCA: true, BasicConstraintsValid: true,
	}, intermediate, its)
	url := authority.URL + "/long"
	leaf := authority.SignKey(keys()[0], &x509.Certificate{DNSNames: []string{"a.example"}, IssuingCertificateURL: []string{url}}, issuer, key)
	private, err := x509.MarshalECPrivateKey(keys()[0])
	if err != nil {
		t.Fatal(err)
	}
	ing := ingressOf(0, 0)
	ing.Spec.Rules[0].Host = "a.example"
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "tls"}}
	s := newStore([]metav1.Object{ing, secretOf("tls", pkitest.PEM(leaf), string(pemOf("EC PRIVATE KEY", private)))})
	s.Apply(&source.Issuers{ObjectMeta: metav1.ObjectMeta{Name: url}, Chain: [][]byte{issuer.Raw}}, false)
	_, certificate, _, fs := newBuilder().Name("a.example", s)
	if certificate == nil || string(certificate.Chain) != pkitest.PEM(leaf) || len(fs) != 1 || fs[0].Code != finding.IncompleteChain {
		t.Errorf("%v, findings %v", certificate, fs)
	}
}
