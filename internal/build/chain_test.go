package build_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/test/pkitest"
)

func secretOf(name, chain, key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Data:       map[string][]byte{"tls.crt": []byte(chain), "tls.key": []byte(key)},
	}
}

// TestChains: what was fetched is put behind the certificates that it signed,
// without the root.
func TestChains(t *testing.T) {
	authority, stranger := pkitest.New(t), pkitest.New(t)
	pair := authority.Issue("a.example")
	url := authority.URL + "/intermediate"
	fetched := func(problem string, chain ...*x509.Certificate) *source.Issuers {
		object := &source.Issuers{ObjectMeta: metav1.ObjectMeta{Name: url}, Problem: problem}
		for _, c := range chain {
			object.Chain = append(object.Chain, c.Raw)
		}
		return object
	}
	for name, c := range map[string]struct {
		written  string
		fetched  *source.Issuers
		want     string
		reported string
	}{
		"not fetched yet": {pair.Certificate, nil, pair.Certificate, ""},
		"fetched":         {pair.Certificate, fetched("", authority.Intermediate, authority.Root), pair.Chain, ""},
		"only the root":   {pair.Certificate, fetched("", authority.Root), pair.Certificate, "the certificate at this URL is not that of the issuer"},
		"a stranger":      {pair.Certificate, fetched("", stranger.Intermediate), pair.Certificate, "the certificate at this URL is not that of the issuer"},
		"a stranger behind it": {
			pair.Certificate, fetched("", authority.Intermediate, stranger.Root), pair.Chain, "",
		},
		"its own":       {pair.Certificate, fetched("", pair.Leaf), pair.Certificate, "the certificate at this URL is not that of the issuer"},
		"a problem":     {pair.Certificate, fetched("it is not there"), pair.Certificate, "it is not there"},
		"complete":      {pair.Chain, fetched("", authority.Intermediate, authority.Root), pair.Chain, ""},
		"rubbish there": {pair.Certificate, &source.Issuers{ObjectMeta: metav1.ObjectMeta{Name: url}, Chain: [][]byte{{1}}}, pair.Certificate, "the certificate at this URL is not that of the issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			ing := ingressOf(0, 0)
			ing.Spec.Rules[0].Host = "a.example"
			ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "tls"}}
			s := newStore([]metav1.Object{ing, secretOf("tls", c.written, pair.Key)})
			if c.fetched != nil {
				s.Apply(c.fetched, false)
			}
			builder := newBuilder()
			for range 2 { // the second one from memory
				n, certificate, _, fs := builder.Name("a.example", s)
				if certificate == nil || string(certificate.Chain) != c.want || n.Certificate != certificate.Hash || certificate.Secret != "shop/tls" {
					t.Fatalf("got %v\nwant the chain %s", certificate, c.want)
				}
				if (len(fs) > 0) != (c.reported != "") || len(fs) > 0 && (fs[0].Code != finding.IncompleteChain || !strings.HasSuffix(fs[0].Message, c.reported)) {
					t.Errorf("findings %v, want %q", fs, c.reported)
				}
			}
		})
	}
}

// TestIssuerURL is about what is asked for.
func TestIssuerURL(t *testing.T) {
	authority := pkitest.New(t)
	pair := authority.Issue("a.example")
	named := func(urls ...string) string {
		return authority.IssueAs(&x509.Certificate{IssuingCertificateURL: urls}, "x").Certificate
	}
	for name, c := range map[string]struct{ chain, want string }{
		"the leaf's":          {pair.Certificate, authority.URL + "/intermediate"},
		"the last one's":      {pair.Chain, authority.URL + "/root"},
		"a root":              {pair.Chain + pkitest.PEM(authority.Root), ""},
		"the first over http": {named("ldap://x", "https://x", "http://x/1", "http://x/2"), "http://x/1"},
		"none over http":      {named("ldap://x"), ""},
		"a long one":          {named("http://x/" + strings.Repeat("x", 2048)), ""},
		"none":                {named(), ""}, "no certificate": {"rubbish", ""}, "empty": {"", ""},
		"a bad last one": {pair.Certificate + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), ""},
		"another block":  {pair.Certificate + pair.Key, authority.URL + "/intermediate"},
	} {
		if got := certificate.IssuerURL(secretOf("x", c.chain, "")); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestOCSPResponse: answers and what is reported of them.
func TestOCSPResponse(t *testing.T) {
	s := newStore(nil)
	builder := newBuilder()
	for _, c := range []struct {
		response, problem, reported string
		deleted, found              bool
	}{
		{"", "no response", "the certificate is served without an OCSP response", false, false},
		{"x", "", "", false, true},
		{"x", "no response", "the last OCSP response is served until it expires", false, true},
		{"x", "", "", true, false},
	} {
		s.Apply(&source.OCSPResponse{ObjectMeta: metav1.ObjectMeta{Name: "abc"}, Secret: "shop/tls", Response: []byte(c.response), Problem: c.problem}, c.deleted)
		response, found, fs := builder.OCSPResponse("abc", s)
		if found != c.found || found && (response.Certificate != "abc" || string(response.Response) != c.response) {
			t.Errorf("%+v: %v, %+v", c, found, response)
		}
		if (len(fs) == 1) != (c.reported != "") || len(fs) > 0 && (fs[0].Effect != c.reported || fs[0].Object != "secret/shop/tls" || fs[0].Message != c.problem) {
			t.Errorf("%+v: %v", c, fs)
		}
	}
}

// FuzzChain puts anything behind anything.
func FuzzChain(f *testing.F) {
	authority := pkitest.New(f)
	pair := authority.Issue("a.example")
	f.Add([]byte(pair.Certificate), authority.Intermediate.Raw)
	f.Add([]byte(pair.Chain), authority.Root.Raw)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte{})
	ing := ingressOf(0, 0)
	ing.Spec.Rules[0].Host = "a.example"
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "tls"}}
	f.Fuzz(func(t *testing.T, chain, fetched []byte) {
		secret := secretOf("tls", string(chain), pair.Key)
		s := newStore([]metav1.Object{ing, secret})
		s.Apply(&source.Issuers{ObjectMeta: metav1.ObjectMeta{Name: certificate.IssuerURL(secret)}, Chain: [][]byte{fetched}}, false)
		_, certificate, _, _ := newBuilder().Name("a.example", s)
		if certificate == nil {
			return
		}
		block, _ := pem.Decode(certificate.Chain)
		if block == nil || !bytes.Equal(block.Bytes, pair.Leaf.Raw) {
			t.Errorf("shows another certificate than the key's")
		}
	})
}
