package link

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"
)

const (
	// EdgeValidity is how long an edge's certificate is valid.
	EdgeValidity = 24 * time.Hour
	// clockSkew is how much earlier a certificate is valid than it was made: other clocks may be behind.
	clockSkew = time.Hour
	// MaxRequest is the maximum size of a certificate signing request, in bytes.
	MaxRequest = 8 << 10
)

const (
	certificateBlock = "CERTIFICATE"
	requestBlock     = "CERTIFICATE REQUEST"
	keyBlock         = "PRIVATE KEY"
)

// An Authority signs the certificates of edges, and of the control.
type Authority struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an Authority with a new key.
func NewAuthority(now, until time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of an authority: %w", err)
	}
	a := &Authority{key: key, Certificate: &x509.Certificate{
		Subject: pkix.Name{CommonName: "CA of Headgate's edges since " + stamp(now)}, NotBefore: now.Add(-clockSkew), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	if a.Certificate, err = a.sign(a.Certificate, &key.PublicKey); err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	return a, nil
}

// ParseAuthority reads an Authority. Of several certificates, the first one is meant.
func ParseAuthority(certificate, key []byte) (*Authority, error) {
	list, err := ParseCertificates(certificate)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	block, _ := pem.Decode(key)
	if block == nil || block.Type != keyBlock {
		return nil, errors.New("read the key of the authority: it is not a PEM block " + keyBlock)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the key of the authority: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	switch {
	case !ok || private.Curve != elliptic.P256():
		return nil, errors.New("the key of the authority must be ECDSA on P-256")
	case !private.PublicKey.Equal(list[0].PublicKey):
		return nil, errors.New("the key is not that of the authority's certificate")
	case !list[0].IsCA:
		return nil, errors.New("the certificate is not that of an authority")
	}
	return &Authority{list[0], private}, nil
}

// Key is the key in PEM.
func (a *Authority) Key() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("write the key of the authority: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// sign completes a certificate. It ends with the authority's own at the latest.
func (a *Authority) sign(c *x509.Certificate, public *ecdsa.PublicKey) (*x509.Certificate, error) {
	var err error
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	if c.NotAfter.After(a.Certificate.NotAfter) {
		c.NotAfter = a.Certificate.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.Certificate, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read what was signed: %w", err)
	}
	return signed, nil
}

// Edge signs the certificate of an edge. Its key is all that is taken from the request.
func (a *Authority) Edge(request *x509.CertificateRequest, i Identity, now time.Time, validity time.Duration) (*x509.Certificate, error) {
	if err := i.Validate(); err != nil {
		return nil, err
	}
	public, err := requested(request)
	if err != nil {
		return nil, err
	}
	uri, err := url.Parse(i.URI())
	if err != nil {
		return nil, fmt.Errorf("write the identity: %w", err)
	}
	subject := pkix.Name{CommonName: i.Name}
	if i.Account != "" {
		subject.Organization = []string{i.Account}
	}
	return a.sign(&x509.Certificate{
		Subject: subject, URIs: []*url.URL{uri}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validity),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, public)
}

// requested is the key that a request is for, which has signed it.
func requested(request *x509.CertificateRequest) (*ecdsa.PublicKey, error) {
	public, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return nil, errors.New("the key of the certificate signing request must be ECDSA on P-256")
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the certificate signing request is not signed by its own key: %w", err)
	}
	return public, nil
}

// Server makes a certificate with a new key for a control.
func (a *Authority) Server(now time.Time, validity time.Duration) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of a control: %w", err)
	}
	leaf, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: ServerName}, DNSNames: []string{ServerName}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validity),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, &key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of a control: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// ParseCertificates reads certificates in PEM, at least one.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != certificateBlock {
			return nil, fmt.Errorf("there is a PEM block %q among the certificates", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read a certificate: %w", err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("there is no certificate in PEM")
	}
	return list, nil
}

// EncodeCertificates writes certificates in PEM.
func EncodeCertificates(list ...*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, c := range list {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw}))
	}
	return text.Bytes()
}

// Pool are certificates as those that are trusted.
func Pool(list ...*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range list {
		pool.AddCert(c)
	}
	return pool
}

// parseRequest reads a certificate signing request in PEM.
func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > MaxRequest {
		return nil, fmt.Errorf("the certificate signing request has more than %d bytes", MaxRequest)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != requestBlock {
		return nil, errors.New("there must be a PEM block " + requestBlock)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the certificate signing request: %w", err)
	}
	return request, nil
}

// stamp writes a time for people.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
