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
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"time"
)

// A clientCertificate is a client's, with its authority in PEM.
type clientCertificate struct {
	pair      *tls.Certificate
	authority []byte
}

func newClientCertificate() (clientCertificate, error) {
	fail := func(err error) (clientCertificate, error) {
		return clientCertificate{}, fmt.Errorf("make a client certificate: %w", err)
	}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return fail(err)
		}
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, keys[0].Public(), keys[0])
	if err != nil {
		return fail(err)
	}
	client := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "client"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter}
	leaf, err := x509.CreateCertificate(rand.Reader, client, authority, keys[1].Public(), keys[0])
	if err != nil {
		return fail(err)
	}
	return clientCertificate{
		&tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: keys[1]},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}),
	}, nil
}

// manifests are a Secret with the authority and an Ingress of clientName that requires it.
func (c clientCertificate) manifests() string {
	bundle := strings.ReplaceAll(strings.TrimSpace(string(c.authority)), "\n", "\n    ")
	metadata := "  annotations: {nginx.ingress.kubernetes.io/auth-tls-secret: " + namespace + "/clients}\n"
	return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: clients, namespace: " + namespace + "}\nstringData:\n  ca.crt: |\n    " + bundle + "\n---\n" +
		ingress("tls-client", clientName, metadata) + securedBy(clientName)
}

// checkVerification shows that the server wants the client's certificate, and takes it.
func checkVerification(ctx context.Context, one *side) error {
	for _, certificates := range [][]tls.Certificate{{*one.certificate}, nil} {
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: one.host, InsecureSkipVerify: true, Certificates: certificates},
		}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+local(one.port), nil)
		if err != nil {
			return err
		}
		request.Host = one.host
		answer, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		answer.Body.Close()
		if passes := answer.StatusCode < http.StatusBadRequest; passes != (certificates != nil) {
			return fmt.Errorf("%s: status %d, with a client certificate: %v", one.name, answer.StatusCode, certificates != nil)
		}
	}
	return nil
}

// end has the server read all of the handshake: it ends the connection only then.
func end(connection *tls.Conn) error {
	if err := errors.Join(connection.SetDeadline(time.Now().Add(10*time.Second)), connection.CloseWrite()); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, connection)
	return err
}
