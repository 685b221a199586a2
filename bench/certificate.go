package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A keyPair is a certificate with its key, in PEM.
type keyPair struct {
	chain, key []byte
	// der is the certificate as a handshake shows it.
	der string
}

// newCertificate makes a certificate for a host, signed by itself.
func newCertificate(host string) (keyPair, error) {
	fail := func(err error) (keyPair, error) { return keyPair{}, fmt.Errorf("make a certificate: %w", err) }
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fail(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fail(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	return keyPair{
		chain: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		der:   string(der),
	}, nil
}

func tlsSecret(namespace, name string, pair keyPair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metaIn(namespace, name), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.chain, corev1.TLSPrivateKeyKey: pair.key},
	}
}

// handshake returns the certificate that a new connection is shown for a host.
func (h *headgate) handshake(ctx context.Context, host string) (der string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	plain, err := h.dial(ctx, "tcp", local(h.https))
	if err != nil {
		return "", err
	}
	defer plain.Close()
	// The benchmark looks at the certificate itself.
	conn := tls.Client(plain, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err := conn.HandshakeContext(ctx); err != nil {
		return "", err
	}
	return string(conn.ConnectionState().PeerCertificates[0].Raw), nil
}
