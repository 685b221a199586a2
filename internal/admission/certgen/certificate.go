// Package certgen makes certificates for webhooks, each signed by a certificate authority
// of its own, stores them in Secrets, and has API servers trust them.
//
// It acts once when it is called. When to renew a certificate, and who serves it, is for
// its callers.
package certgen

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
	"net"
	"time"
)

// Validity is how long the certificates of the program are valid, in years.
const Validity = 100

// clockSkew is how much earlier a certificate is valid than it was made: clocks of API
// servers may be behind.
const clockSkew = time.Hour

// A Pair is a certificate and its key, with the authorities that clients trust. All is in
// PEM.
type Pair struct{ CA, Certificate, Key []byte }

// New makes a certificate for names, which are DNS names or IP addresses, and an authority
// that has signed it and whose key is not kept: nothing else is ever signed by it.
func New(names []string, now, until time.Time) (Pair, error) {
	pair, err := newPair(names, now, until)
	if err != nil {
		return Pair{}, fmt.Errorf("make a certificate: %w", err)
	}
	return pair, nil
}

func newPair(names []string, now, until time.Time) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, errors.New("there is no name to make it for")
	}
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "CA of an admission webhook"}, NotBefore: now.Add(-clockSkew), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityKey, err := sign(authority, authority, nil)
	if err != nil {
		return Pair{}, err
	}
	// The names are in no common name: it would be limited to 64 characters.
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: "admission webhook"}, NotBefore: authority.NotBefore, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	key, err := sign(leaf, authority, authorityKey)
	if err != nil {
		return Pair{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("write the key: %w", err)
	}
	return Pair{
		CA: encode(authority), Certificate: encode(leaf),
		Key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}, nil
}

// sign completes a certificate with a new key, which it returns. Without a key of the
// parent, it signs itself.
func sign(c, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if parentKey == nil {
		parentKey = key
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read what was signed: %w", err)
	}
	*c = *signed
	return key, nil
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// Read returns the certificate to serve. It is an error if clients that trust the
// authorities of the pair would refuse it for another reason than its names or its time.
func (p Pair) Read() (*tls.Certificate, error) {
	served, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate and the key: %w", err)
	}
	if len(p.Issuers(served.Leaf)) == 0 {
		return nil, errors.New("no authority in the CA has signed the certificate")
	}
	return &served, nil
}

// Issuers are the authorities of the pair that have signed a certificate, in PEM.
func (p Pair) Issuers(leaf *x509.Certificate) []byte {
	var signers bytes.Buffer
	for rest := p.CA; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return signers.Bytes()
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err == nil && leaf.CheckSignatureFrom(authority) == nil {
			signers.Write(encode(authority))
		}
	}
}

// After is the pair with the authorities of an older pair too, so that clients trust
// certificates of both while some servers have the older one.
func (p Pair) After(older Pair) Pair {
	if served, err := older.Read(); err == nil {
		p.CA = append(bytes.Clone(p.CA), older.Issuers(served.Leaf)...)
	}
	return p
}
