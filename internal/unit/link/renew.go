package link

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/guard/pemfile"
)

// renew gets a certificate with a new key: by the one that there is, or else by the token.
func (c *Client) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of the edge: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return fmt.Errorf("make a certificate signing request: %w", err)
	}
	request := pem.EncodeToMemory(&pem.Block{Type: requestBlock, Bytes: der})
	if _, err := c.certificate(); err == nil {
		if err = c.get(ctx, c.certificate, "", request, key); err == nil {
			return nil
		}
		c.Log.Warn("the certificate of the edge is not renewed by the one that it has", "error", err, "effect", "it is tried with the token")
	}
	token, err := pemfile.Read(c.TokenFile, maxToken)
	if err != nil {
		return fmt.Errorf("read the token of the edge: %w", err)
	}
	if token = bytes.TrimSpace(token); len(token) == 0 {
		return fmt.Errorf("read the token of the edge: the file %s is empty", c.TokenFile)
	}
	return c.get(ctx, nil, string(token), request, key)
}

// get asks for a certificate over a connection of its own, and has it shown from now on.
func (c *Client) get(ctx context.Context, show func() (*tls.Certificate, error), token string, request []byte, key *ecdsa.PrivateKey) error {
	connection, err := c.open(show)
	if err != nil {
		return err
	}
	defer connection.Close()
	text, bundle, err := enroll(ctx, connection, token, request)
	if err != nil {
		return c.readable(err)
	}
	list, err := ParseCertificates(text)
	if err != nil {
		return fmt.Errorf("read what the control at %s answers: %w", c.Address, err)
	}
	leaf := list[0]
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return fmt.Errorf("the control at %s has signed the key of another edge", c.Address)
	}
	if now := time.Now(); now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return fmt.Errorf("the clock of this edge (%s) or that of the control at %s is wrong: the new certificate is valid from %s to %s",
			stamp(now), c.Address, stamp(leaf.NotBefore), stamp(leaf.NotAfter))
	}
	own := &tls.Certificate{PrivateKey: key, Leaf: leaf}
	for _, certificate := range list {
		own.Certificate = append(own.Certificate, certificate.Raw)
	}
	c.use(own)
	c.Log.Info("the edge has a certificate", "uri", leaf.URIs, "serial", leaf.SerialNumber.Text(16), "until", leaf.NotAfter)
	c.compare(bundle)
	return nil
}

// readable says what an error of gRPC means.
func (c *Client) readable(err error) error {
	answer := status.Convert(err)
	switch answer.Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition:
		return fmt.Errorf("the control at %s refuses this edge: %s", c.Address, answer.Message())
	case codes.Unimplemented:
		return fmt.Errorf("what answers at %s is not a control: %s", c.Address, answer.Message())
	}
	return fmt.Errorf("get a certificate of the control at %s: %w", c.Address, errors.New(answer.Message()))
}

// compare logs, once, that the edge does not trust what the control may show soon.
func (c *Client) compare(bundle []byte) {
	announced, err := ParseCertificates(bundle)
	if err != nil {
		return
	}
	trusted, err := c.authorities.Get()
	if err != nil {
		return
	}
	var lacking []*x509.Certificate
	for _, a := range announced {
		if !slices.ContainsFunc(trusted, a.Equal) {
			lacking = append(lacking, a)
		}
	}
	text := string(EncodeCertificates(lacking...))
	c.mu.Lock()
	defer c.mu.Unlock()
	if text != "" && text != c.lacking {
		c.Log.Warn("the file with the authorities of the control has not all of them", "file", c.CAFile, "lacks", lacking[0].Subject.CommonName,
			"effect", "the edge can't connect once the control has a certificate of that one")
	}
	c.lacking = text
}
