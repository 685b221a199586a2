package link

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func newAuthority(t testing.TB) *Authority {
	t.Helper()
	a, err := NewAuthority(time.Now(), time.Now().Add(48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// requestOf is a certificate signing request in PEM.
func requestOf(t testing.TB, template *x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: requestBlock, Bytes: der})
}

// greedy is a request for all that an edge must not get.
func greedy(t testing.TB) *x509.CertificateRequest {
	t.Helper()
	uri, err := url.Parse("spiffe://headgate/edges/other")
	if err != nil {
		t.Fatal(err)
	}
	constraints, err := asn1.Marshal(struct{ IsCA bool }{true})
	if err != nil {
		t.Fatal(err)
	}
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 1}})
	if err != nil {
		t.Fatal(err)
	}
	return &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: ServerName, Organization: []string{"system:masters"}}, DNSNames: []string{ServerName},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, EmailAddresses: []string{"a@b"}, URIs: []*url.URL{uri},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: constraints}, {Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Value: usage}},
	}
}

func parsed(t testing.TB, text []byte) *x509.CertificateRequest {
	t.Helper()
	request, err := parseRequest(text)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// TestRequestChoosesNothing: of a request, nothing but the key gets into the certificate.
func TestRequestChoosesNothing(t *testing.T) {
	a, key, now := newAuthority(t), newKey(t), time.Now()
	c, err := a.Edge(parsed(t, requestOf(t, greedy(t), key)), Identity{"shop", "edge-1", "shop/edge"}, now, EdgeValidity)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := IdentityOf(c); err != nil || got != (Identity{"shop", "edge-1", "shop/edge"}) {
		t.Errorf("the identity is %v, %v", got, err)
	}
	if c.IsCA || len(c.DNSNames) > 0 || len(c.IPAddresses) > 0 || len(c.EmailAddresses) > 0 || !slices.Equal(c.Subject.Organization, []string{"shop/edge"}) {
		t.Errorf("the certificate has %v %v %v %v, CA %t", c.Subject, c.DNSNames, c.IPAddresses, c.EmailAddresses, c.IsCA)
	}
	if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || len(c.UnknownExtKeyUsage) > 0 {
		t.Errorf("the usages are %v %v", c.ExtKeyUsage, c.UnknownExtKeyUsage)
	}
	if !key.PublicKey.Equal(c.PublicKey) {
		t.Error("the key is another one")
	}
	if before, life := now.Sub(c.NotBefore).Round(time.Minute), c.NotAfter.Sub(now).Round(time.Minute); before != time.Hour || life != 24*time.Hour {
		t.Errorf("it is valid since %s and for %s", before, life)
	}
}

// TestValidityEndsWithAuthority: no certificate is valid for longer than who has signed it.
func TestValidityEndsWithAuthority(t *testing.T) {
	a, now := newAuthority(t), time.Now()
	edge, err := a.Edge(parsed(t, requestOf(t, &x509.CertificateRequest{}, newKey(t))), Identity{Name: "edge"}, now, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server, err := a.Server(now, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*x509.Certificate{edge, server.Leaf} {
		if !c.NotAfter.Equal(a.Certificate.NotAfter) {
			t.Errorf("it ends at %s, and the authority at %s", c.NotAfter, a.Certificate.NotAfter)
		}
	}
	if got := server.Leaf; !slices.Equal(got.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) || !slices.Equal(got.DNSNames, []string{ServerName}) || len(got.URIs) > 0 {
		t.Errorf("the control's certificate has %v %v %v", got.ExtKeyUsage, got.DNSNames, got.URIs)
	}
}

func TestBadRequests(t *testing.T) {
	a := newAuthority(t)
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	forged := parsed(t, requestOf(t, &x509.CertificateRequest{}, newKey(t)))
	forged.PublicKey = &newKey(t).PublicKey
	plain := parsed(t, requestOf(t, &x509.CertificateRequest{}, newKey(t)))
	for name, c := range map[string]struct {
		request *x509.CertificateRequest
		i       Identity
		err     string
	}{
		"RSA":           {parsed(t, requestOf(t, &x509.CertificateRequest{}, long)), Identity{Name: "edge"}, "ECDSA on P-256"},
		"P-384":         {parsed(t, requestOf(t, &x509.CertificateRequest{}, other)), Identity{Name: "edge"}, "ECDSA on P-256"},
		"another's key": {forged, Identity{Name: "edge"}, "not signed by its own key"},
		"bad group":     {plain, Identity{"a/b", "edge", ""}, "the group"},
		"bad account":   {plain, Identity{"", "edge", "shop"}, "the account"},
		"no name":       {plain, Identity{}, "the name"},
	} {
		if _, err := a.Edge(c.request, c.i, time.Now(), EdgeValidity); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseAuthority(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	key, err := a.Key()
	if err != nil {
		t.Fatal(err)
	}
	server, err := a.Server(time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	serverKey, err := (&Authority{key: server.PrivateKey.(*ecdsa.PrivateKey)}).Key()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		certificate, key []byte
		err              string
	}{
		"itself":          {EncodeCertificates(a.Certificate, b.Certificate), key, ""},
		"another's key":   {EncodeCertificates(b.Certificate), key, "not that of"},
		"no authority":    {EncodeCertificates(server.Leaf), serverKey, "not that of an authority"},
		"no key":          {EncodeCertificates(a.Certificate), nil, "PEM block"},
		"no certificate":  {nil, key, "no certificate"},
		"key as a second": {append(EncodeCertificates(a.Certificate), key...), key, "PRIVATE KEY"},
	} {
		got, err := ParseAuthority(c.certificate, c.key)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (!got.Certificate.Equal(a.Certificate) || !got.key.Equal(a.key)) {
			t.Errorf("%s: it is another one", name)
		}
	}
}

// FuzzRequest: what an edge sends is refused, or signed without what it asks for.
func FuzzRequest(f *testing.F) {
	a := newAuthority(f)
	f.Add(requestOf(f, &x509.CertificateRequest{}, newKey(f)))
	f.Add(requestOf(f, greedy(f), newKey(f)))
	f.Add(EncodeCertificates(a.Certificate))
	f.Add(bytes.Repeat([]byte("a"), MaxRequest+1))
	f.Fuzz(func(t *testing.T, text []byte) {
		request, err := parseRequest(text)
		if err != nil {
			return
		}
		c, err := a.Edge(request, Identity{"shop", "edge", ""}, time.Now(), EdgeValidity)
		if err != nil {
			return
		}
		if i, err := IdentityOf(c); err != nil || i != (Identity{"shop", "edge", ""}) || c.IsCA || len(c.DNSNames) > 0 {
			t.Errorf("signed %v", c)
		}
	})
}

// FuzzParseCertificates: what is read is written again.
func FuzzParseCertificates(f *testing.F) {
	a := newAuthority(f)
	f.Add(EncodeCertificates(a.Certificate))
	f.Add(EncodeCertificates(a.Certificate, a.Certificate))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseCertificates(text)
		if err != nil {
			return
		}
		again, err := ParseCertificates(EncodeCertificates(list...))
		if err != nil || !slices.EqualFunc(again, list, (*x509.Certificate).Equal) {
			t.Errorf("%v is %v, %v", list, again, err)
		}
	})
}
