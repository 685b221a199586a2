package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A clientCertificate is a client's, with the authorities in PEM by which its host verifies it.
type clientCertificate struct {
	host        string
	pair        *tls.Certificate
	authorities []byte
}

// manyAuthorities are as many as a Secret may have.
const manyAuthorities = 1000

// newClientCertificates makes clients, each with a host and an authority of its own.
func newClientCertificates(n int) ([]clientCertificate, error) {
	fail := func(err error) ([]clientCertificate, error) {
		return nil, fmt.Errorf("make client certificates: %w", err)
	}
	var clients []clientCertificate
	for i := range n {
		var keys [2]*ecdsa.PrivateKey
		for j := range keys {
			var err error
			if keys[j], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
				return fail(err)
			}
		}
		authority := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: fmt.Sprintf("authority %d", i)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
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
		clients = append(clients, clientCertificate{
			host: fmt.Sprintf("c-%05d.tls.example.com", i), pair: &tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: keys[1]},
			authorities: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}),
		})
	}
	return clients, nil
}

// bundled is the last of the clients, at a host that takes those of all.
func bundled(clients []clientCertificate) clientCertificate {
	one := clients[len(clients)-1]
	one.host, one.authorities = "bundle.tls.example.com", nil
	for _, client := range clients {
		one.authorities = append(one.authorities, client.authorities...)
	}
	return one
}

// manifests are a Secret with the authorities, and an Ingress of the host that requires one
// of their certificates.
func (c clientCertificate) manifests() string {
	name, _, _ := strings.Cut(c.host, ".")
	metadata := "  annotations: {nginx.ingress.kubernetes.io/auth-tls-secret: " + namespace + "/" + name + "}\n"
	return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ndata: {ca.crt: %s}\n---\n",
		name, namespace, base64.StdEncoding.EncodeToString(c.authorities)) + ingress(name, c.host, metadata) + securedBy(c.host)
}

// compareClientCertificates compares handshakes with client certificates: of one authority,
// of one among a Secret's, of hosts with an authority each, and those that resume a session.
func (s *stage) compareClientCertificates(ctx context.Context, pair keyPair) ([]comparison, error) {
	h, static, clients, err := s.startForClients(ctx, pair, hosts)
	if err != nil {
		return nil, err
	}
	var rows []comparison
	for _, row := range []struct {
		name    string
		clients []clientCertificate
		resumes bool
	}{
		{"a client certificate", clients[:1], false},
		{"a client certificate, of 1,000 authorities", []clientCertificate{bundled(clients)}, false},
		{"a client certificate, 1,000 hosts in turn", clients, false},
		{"a client certificate, resumed", clients[:1], true},
	} {
		base := &side{name: "static, " + row.name, instance: static, handshakes: true, clients: row.clients, resumes: row.resumes}
		by := &side{name: "headgate, " + row.name, instance: instance{port: h.https, worker: h.worker}, handshakes: true, clients: row.clients, resumes: row.resumes}
		for _, one := range []*side{base, by} {
			if err := checkVerification(ctx, one); err != nil {
				return nil, err
			}
		}
		rows = append(rows, comparison{row.name, base, by, 0})
	}
	return rows, nil
}

// startForClients starts both sides with the clients' hosts and one for the authorities of
// all. Headgate has further hosts.
func (s *stage) startForClients(ctx context.Context, pair keyPair, further int) (h *headgate, static instance, clients []clientCertificate, err error) {
	if clients, err = newClientCertificates(manyAuthorities); err != nil {
		return nil, static, nil, err
	}
	all := append(slices.Clone(clients), bundled(clients))
	var manifests strings.Builder
	for _, client := range all {
		manifests.WriteString(client.manifests())
	}
	if h, err = s.startForHandshakes(ctx, "headgate-clients", pair, "", further, manifests.String()); err != nil {
		return nil, static, nil, err
	}
	static, err = s.startStaticTLS(ctx, "static-clients", pair, h, all...)
	return h, static, clients, err
}

// checkVerification shows that the server wants a client's certificate, and takes it.
func checkVerification(ctx context.Context, one *side) error {
	first := one.clients[0]
	for _, certificates := range [][]tls.Certificate{{*first.pair}, nil} {
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: first.host, InsecureSkipVerify: true, Certificates: certificates},
		}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+local(one.port), nil)
		if err != nil {
			return err
		}
		request.Host = first.host
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
