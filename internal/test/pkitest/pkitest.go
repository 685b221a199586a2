// Package pkitest is a certificate authority for tests: a root, an intermediate
// that issues certificates, and a web server on the loopback address that has
// their certificates and answers OCSP.
package pkitest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"
)

// An Authority issues certificates.
type Authority struct {
	// URL is the server's. "/ocsp" answers OCSP, "/intermediate" and "/root" are
	// certificates in DER.
	URL                string
	Root, Intermediate *x509.Certificate

	t            testing.TB
	key          crypto.Signer
	intermediate crypto.Signer

	mu      sync.Mutex
	respond Responder
	asked   int
}

// A Responder makes the answer on a serial number: what is signed, by whom, and
// with which key. If status is not 0 that is all of the answer.
type Responder func(serial *big.Int) (template ocsp.Response, signer *x509.Certificate, key crypto.Signer, status int)

// New starts an Authority whose answers are good for an hour, until the test
// ends.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.URL = server.URL
	a.Root, a.key = a.Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	a.Intermediate, a.intermediate = a.Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "intermediate"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		IssuingCertificateURL: []string{a.URL + "/root"},
	}, a.Root, a.key)
	a.Respond(a.Good(time.Hour))
	return a
}

// Sign makes a certificate with a new key. Without a parent it signs itself.
func (a *Authority) Sign(template, parent *x509.Certificate, by crypto.Signer) (*x509.Certificate, crypto.Signer) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	return a.SignKey(key, template, parent, by), key
}

// SignKey makes a certificate of a key. Without a parent it signs itself.
func (a *Authority) SignKey(key crypto.Signer, template, parent *x509.Certificate, by crypto.Signer) *x509.Certificate {
	a.t.Helper()
	var err error
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	a.must(err)
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(90 * 24 * time.Hour)
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	a.must(err)
	certificate, err := x509.ParseCertificate(der)
	a.must(err)
	return certificate
}

// LongKey makes an RSA key that is longer than Headgate takes, of many short
// primes: two long ones take minutes to find.
func LongKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: big.NewInt(1), E: 65537}}
	one, phi, exponent := big.NewInt(1), big.NewInt(1), big.NewInt(int64(key.E))
	for key.N.BitLen() <= 8192 {
		prime, err := rand.Prime(rand.Reader, 1024)
		if err != nil {
			t.Fatal(err)
		}
		less := new(big.Int).Sub(prime, one)
		if new(big.Int).Mod(less, exponent).Sign() == 0 {
			continue // With this prime there is no D.
		}
		key.N.Mul(key.N, prime)
		phi.Mul(phi, less)
		key.Primes = append(key.Primes, prime)
	}
	key.D = new(big.Int).ModInverse(exponent, phi)
	return key
}

// A Pair is a certificate with its key.
type Pair struct {
	Leaf *x509.Certificate
	// Chain is the certificate with the intermediate behind it, Certificate
	// without; all in PEM.
	Chain, Certificate, Key string
}

// Issue makes a certificate for names, which names the authority's server as
// responder and for its issuer. Its common name is the first name.
func (a *Authority) Issue(names ...string) Pair {
	a.t.Helper()
	return a.IssueAs(&x509.Certificate{
		OCSPServer: []string{a.URL + "/ocsp"}, IssuingCertificateURL: []string{a.URL + "/intermediate"},
	}, names...)
}

// IssueAs makes a certificate for names from a template.
func (a *Authority) IssueAs(template *x509.Certificate, names ...string) Pair {
	a.t.Helper()
	template.Subject, template.DNSNames = pkix.Name{CommonName: names[0]}, names
	leaf, key := a.Sign(template, a.Intermediate, a.intermediate)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	a.must(err)
	certificate := PEM(leaf)
	return Pair{
		Leaf: leaf, Certificate: certificate, Chain: certificate + PEM(a.Intermediate),
		Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}

// RequireOCSPResponse is the extension of certificates that require an OCSP
// response (must-staple).
func RequireOCSPResponse() pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5}}
}

// PEM is a certificate in PEM.
func PEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// Respond has the server answer so from now on.
func (a *Authority) Respond(r Responder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.respond = r
}

// Asked is how many OCSP questions there were.
func (a *Authority) Asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// Good answers that certificates are good, for so long.
func (a *Authority) Good(life time.Duration) Responder {
	return a.Says(ocsp.Good, 0, life)
}

// Says answers with a status of package ocsp, from and until so much after now.
func (a *Authority) Says(status int, from, until time.Duration) Responder {
	return func(serial *big.Int) (ocsp.Response, *x509.Certificate, crypto.Signer, int) {
		now := time.Now()
		template := ocsp.Response{Status: status, SerialNumber: serial, ThisUpdate: now.Add(from), RevokedAt: now}
		if until != 0 {
			template.NextUpdate = now.Add(until)
		}
		return template, a.Intermediate, a.intermediate, 0
	}
}

// Fails answers with a status of HTTP.
func Fails(status int) Responder {
	return func(*big.Int) (ocsp.Response, *x509.Certificate, crypto.Signer, int) {
		return ocsp.Response{}, nil, nil, status
	}
}

// SignedBy answers that certificates are good for an hour, signed by another
// certificate, which stands in the answer.
func (a *Authority) SignedBy(signer *x509.Certificate, key crypto.Signer) Responder {
	good := a.Good(time.Hour)
	return func(serial *big.Int) (ocsp.Response, *x509.Certificate, crypto.Signer, int) {
		template, _, _, _ := good(serial)
		template.Certificate = signer
		return template, signer, key, 0
	}
}

// Delegate makes a certificate of the intermediate's with these usages.
func (a *Authority) Delegate(usages ...x509.ExtKeyUsage) (*x509.Certificate, crypto.Signer) {
	return a.Sign(&x509.Certificate{Subject: pkix.Name{CommonName: "responder"}, ExtKeyUsage: usages}, a.Intermediate, a.intermediate)
}

func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	question, isOCSP := strings.CutPrefix(r.URL.Path, "/ocsp/")
	switch {
	case r.Method != http.MethodGet:
		http.Error(w, "GET only", http.StatusMethodNotAllowed)
	case isOCSP:
		a.serveOCSP(w, question)
	case r.URL.Path == "/root":
		_, _ = w.Write(a.Root.Raw)
	case r.URL.Path == "/intermediate":
		_, _ = w.Write(a.Intermediate.Raw)
	default:
		http.NotFound(w, r)
	}
}

func (a *Authority) serveOCSP(w http.ResponseWriter, question string) {
	a.mu.Lock()
	a.asked++
	respond := a.respond
	a.mu.Unlock()
	der, err := base64.StdEncoding.DecodeString(question)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request, err := ocsp.ParseRequest(der)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	template, signer, key, status := respond(request.SerialNumber)
	if status != 0 {
		http.Error(w, "as configured", status)
		return
	}
	response, err := ocsp.CreateResponse(a.Intermediate, signer, template, key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(response)
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}
