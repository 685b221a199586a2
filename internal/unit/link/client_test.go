package link

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// serial is the number of the certificate that an edge shows, "" without any.
func (c *Client) serial() string {
	own, err := c.certificate()
	if err != nil {
		return ""
	}
	return own.Leaf.SerialNumber.String()
}

// TestClient: an edge gets a certificate for its token, and units; it renews the certificate by that, over and
// over, and its connections show the newest one.
func TestClient(t *testing.T) {
	// Certificates end at full seconds: two thirds of it are over after two to four.
	c := start(t, func(s *ServerSettings) { s.Validity = 5 * time.Second })
	e := c.edge("edge-1")
	if err := e.Err(); err != nil && !strings.Contains(err.Error(), "no certificate yet") {
		t.Error(err)
	}
	until(t, "the edge has a certificate", func() bool { return e.Err() == nil })
	i, end, err := units(t.Context(), e.Connection())
	if err != nil || i != (Identity{"shop", "edge-1", ""}) {
		t.Fatalf("units for %v, %v", i, err)
	}
	first := e.serial()
	until(t, "the certificate is renewed", func() bool { return e.serial() != first })
	if err := end(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream over the old connection: %v", err)
	}
	if i, _, err = units(t.Context(), e.Connection()); err != nil || i != (Identity{"shop", "edge-1", ""}) {
		t.Errorf("units for %v, %v", i, err)
	}
	log := c.log.String()
	if !strings.Contains(log, "renewal=true") || strings.Count(log, "renewal=false") != 1 {
		t.Errorf("the log is %s", log)
	}
}

// TestTokenIfRenewalFails: an edge whose certificate the control does not take any more uses its token.
func TestTokenIfRenewalFails(t *testing.T) {
	c := start(t, nil)
	e := c.edge("edge-1")
	until(t, "the edge has a certificate", func() bool { return e.Err() == nil })
	first := e.serial()
	next := newAuthority(t)
	c.write(strings.TrimSuffix(e.CAFile, "/ca"), "ca", EncodeCertificates(next.Certificate))
	c.trust.Store(trustOf(t, next))
	if err := e.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.serial() == first {
		t.Error("the certificate is the old one")
	}
	if _, _, err := units(t.Context(), e.Connection()); err != nil {
		t.Error(err)
	}
}

// TestRefused: an edge whose certificate is not trusted any more gets another one by itself, long before it ends: if an
// open stream ends, if no connection is taken, and if it trusts the new authority only later.
func TestRefused(t *testing.T) {
	for name, k := range map[string]struct{ opened, late bool }{
		"a stream":               {true, false},
		"no connection":          {false, false},
		"a stream, late trust":   {true, true},
		"no connection and late": {false, true},
	} {
		c := start(t, func(s *ServerSettings) { s.recheck = time.Millisecond })
		e := c.edge("edge-1")
		until(t, "the edge has a certificate", func() bool { return e.Err() == nil })
		first, next := e.serial(), newAuthority(t)
		var end func() error
		if k.opened {
			var err error
			if _, end, err = units(t.Context(), e.Connection()); err != nil {
				t.Fatal(err)
			}
		}
		trust := func() { c.write(strings.TrimSuffix(e.CAFile, "/ca"), "ca", EncodeCertificates(next.Certificate)) }
		if !k.late {
			trust()
		}
		c.trust.Store(trustOf(t, next))
		if k.opened {
			if err := end(); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s: the stream ended with %v", name, err)
			}
		} else {
			e.reconnect()
		}
		if k.late {
			_, _, err := units(t.Context(), e.Connection())
			if err == nil {
				t.Errorf("%s: there are units", name)
			}
			trust()
		}
		until(t, name+": there are units", func() bool {
			_, _, err := units(t.Context(), e.Connection())
			return err == nil
		})
		if e.serial() == first {
			t.Errorf("%s: the certificate is the old one", name)
		}
	}
}

// TestRefusedAgain: a control that refuses what it signs is asked less and less often.
func TestRefusedAgain(t *testing.T) {
	var signed atomic.Int64
	c := start(t, func(s *ServerSettings) {
		s.Review = func(ctx context.Context, token string) (Identity, error) {
			signed.Add(1)
			return reviewed(ctx, token)
		}
	})
	trust := *c.trust.Load()
	trust.Edges = Pool(newAuthority(t).Certificate)
	c.trust.Store(&trust)
	e := c.edge("edge-1")
	began := time.Now()
	until(t, "it was asked six times", func() bool {
		// Each opens a connection, which is refused.
		_, _, _ = units(t.Context(), e.Connection())
		return signed.Load() >= 6
	})
	// Halves of 5, 10, 20, 40 and 80 ms.
	if least := 155 * time.Millisecond / 2; time.Since(began) < least {
		t.Errorf("it was asked six times in %s", time.Since(began))
	}
}

// TestRotation: the control changes its authority in two steps, and the edge has units all the time.
func TestRotation(t *testing.T) {
	c := start(t, nil)
	e := c.edge("edge-1")
	until(t, "the edge has a certificate", func() bool { return e.Err() == nil })
	next, dir := newAuthority(t), strings.TrimSuffix(e.CAFile, "/ca")
	served := func(step string) {
		t.Helper()
		e.reconnect()
		if err := e.renew(t.Context()); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if _, _, err := units(t.Context(), e.Connection()); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	c.trust.Store(trustOf(t, c.authority, next.Certificate))
	served("the next one is announced")
	if !strings.Contains(c.log.String(), "the file with the authorities of the control has not all of them") {
		t.Error("the log does not say that the edge lacks an authority")
	}
	c.write(dir, "ca", EncodeCertificates(c.authority.Certificate, next.Certificate))
	served("the edge trusts both")
	c.trust.Store(trustOf(t, next, c.authority.Certificate))
	served("the next one signs")
	c.write(dir, "ca", EncodeCertificates(next.Certificate))
	c.trust.Store(trustOf(t, next))
	served("the old one is gone")
}

// TestReadable: what is wrong can be read.
func TestReadable(t *testing.T) {
	c := start(t, func(s *ServerSettings) {
		s.Review = func(_ context.Context, token string) (Identity, error) {
			if token == "down" {
				return Identity{}, errors.New("the API server is away")
			}
			return Identity{}, Refusal{"the token is of the ServiceAccount a/b, and --edge-account allows c/d"}
		}
	})
	dir := t.TempDir()
	good, bad := c.write(dir, "ca", EncodeCertificates(c.authority.Certificate)), c.write(dir, "other", EncodeCertificates(newAuthority(t).Certificate))
	token := c.write(dir, "token", []byte("x"))
	for name, k := range map[string]struct {
		change func(*Client)
		want   string
	}{
		"refused":        {func(*Client) {}, "the control at " + c.address + " refuses this edge: the token is of the ServiceAccount a/b, and --edge-account allows c/d"},
		"not reviewed":   {func(e *Client) { e.TokenFile = c.write(dir, "down", []byte("down")) }, "the control can't review the token: its log says why"},
		"no token":       {func(e *Client) { e.TokenFile = dir + "/none" }, "read the token of the edge: open the file"},
		"empty token":    {func(e *Client) { e.TokenFile = c.write(dir, "empty", []byte("\n")) }, "is empty"},
		"long token":     {func(e *Client) { e.TokenFile = c.write(dir, "long", make([]byte, maxToken+1)) }, "more than 16384 bytes"},
		"no authorities": {func(e *Client) { e.authorities = authorityFile(e.Log, "the CA", "", dir+"/none") }, "the CA can't be read"},
		"another one":    {func(e *Client) { e.authorities = authorityFile(e.Log, "the CA", "", bad) }, "unknown authority"},
		"nobody there":   {func(e *Client) { e.Address = "127.0.0.1:1" }, "get a certificate of the control at 127.0.0.1:1: "},
	} {
		e := c.client(ClientSettings{TokenFile: token, CAFile: good})
		k.change(e)
		err := e.renew(t.Context())
		if !says(err, k.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e.report(err)
		if _, _, requested := units(t.Context(), e.Connection()); k.want != "" && name == "refused" && !says(requested, k.want) {
			t.Errorf("%s: a request fails with %v", name, requested)
		}
	}
}

// TestNoControl: an edge takes nothing for its control that has not exactly its name, and the usage of a server.
func TestNoControl(t *testing.T) {
	c := start(t, nil)
	uri, err := url.Parse(edgesURI)
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]struct {
		template *x509.Certificate
		want     string
	}{
		"the control":  {&x509.Certificate{DNSNames: []string{ServerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ""},
		"an edge":      {&x509.Certificate{URIs: []*url.URL{uri}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, "not valid for any names"},
		"named edge":   {&x509.Certificate{DNSNames: []string{ServerName}, URIs: []*url.URL{uri}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, "incompatible key usage"},
		"another name": {&x509.Certificate{DNSNames: []string{"headgate-control.shop"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "not headgate-control"},
		"a wildcard":   {&x509.Certificate{DNSNames: []string{"*"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "headgate-control"},
		"common name":  {&x509.Certificate{Subject: pkix.Name{CommonName: ServerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "legacy Common Name"},
		"expired":      {&x509.Certificate{DNSNames: []string{ServerName}, NotAfter: time.Now().Add(-time.Minute), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "expired"},
	} {
		key := newKey(t)
		k.template.NotBefore = time.Now().Add(-time.Hour)
		if k.template.NotAfter.IsZero() {
			k.template.NotAfter = time.Now().Add(time.Hour)
		}
		leaf, err := c.authority.sign(k.template, &key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		trust := *c.trust.Load()
		trust.Certificate = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
		c.trust.Store(&trust)
		dir := t.TempDir()
		e := c.client(ClientSettings{TokenFile: c.write(dir, "token", []byte("edge-1")), CAFile: c.write(dir, "ca", EncodeCertificates(c.authority.Certificate))})
		if err := e.renew(t.Context()); !says(err, k.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFiles: both sides have certificates that others made, and take new ones as they come.
func TestFiles(t *testing.T) {
	controls, edges, dir := newAuthority(t), newAuthority(t), t.TempDir()
	var source Source
	c := start(t, func(s *ServerSettings) { s.Source = func() (*Trust, error) { return source() } })
	put := func(name string, pair *tls.Certificate) {
		t.Helper()
		key, err := (&Authority{key: pair.PrivateKey.(*ecdsa.PrivateKey)}).Key()
		if err != nil {
			t.Fatal(err)
		}
		c.write(dir, name+".crt", EncodeCertificates(pair.Leaf))
		c.write(dir, name+".key", key)
	}
	put("control", trustOf(t, controls).Certificate)
	put("edge", signed(t, edges, Identity{"shop", "edge", ""}, time.Hour))
	c.write(dir, "edges-ca.crt", EncodeCertificates(edges.Certificate))
	c.write(dir, "ca.crt", EncodeCertificates(controls.Certificate))
	source = Files(slog.New(slog.NewTextHandler(c.log, nil)), dir+"/control.crt", dir+"/control.key", dir+"/edges-ca.crt")
	e := c.client(ClientSettings{CAFile: dir + "/ca.crt", CertificateFile: dir + "/edge.crt", KeyFile: dir + "/edge.key"})
	c.run(e)
	i, end, err := units(t.Context(), e.Connection())
	if err != nil || i != (Identity{"shop", "edge", ""}) {
		t.Fatalf("units for %v, %v", i, err)
	}
	// The Client has seen the first one.
	until(t, "the certificate is known", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.own != nil
	})
	put("edge", signed(t, edges, Identity{"", "edge", ""}, time.Hour))
	if err := end(); err == nil {
		t.Error("the stream has not ended")
	}
	if i, _, err = units(t.Context(), e.Connection()); err != nil || i != (Identity{"", "edge", ""}) {
		t.Errorf("with another certificate: units for %v, %v", i, err)
	}
	// That of an edge is none of a control.
	was := trustOf(t, controls).Certificate
	put("control", signed(t, controls, Identity{"", "edge", ""}, time.Hour))
	e.reconnect()
	until(t, "the last good certificate is used over another connection", func() bool {
		_, _, err := units(t.Context(), e.Connection())
		return err == nil && strings.Contains(c.log.String(), "has not the DNS name headgate-control")
	})
	put("control", was)
	if trust, err := source(); err != nil || !trust.Certificate.Leaf.Equal(was.Leaf) || trust.Signer != nil {
		t.Errorf("the control has %v, %v", trust, err)
	}
}
