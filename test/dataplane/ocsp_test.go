package dataplane_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/internal/unit"
)

func pairOf(p pkitest.Pair) headgatetest.KeyPair {
	return headgatetest.KeyPair{Certificate: p.Chain, Key: p.Key}
}

// OCSP response is the OCSP answer that comes with the certificate of a name, nil if
// none does. A stale one fails the test, and so does one on another
// certificate.
func ocspResponse(t *testing.T, g *headgatetest.Instance, authority *pkitest.Authority, name string, version uint16) *ocsp.Response {
	t.Helper()
	began := time.Now()
	state, err := shake(t, g, &tls.Config{ServerName: name, MinVersion: version, MaxVersion: version})
	if err != nil {
		t.Fatalf("%s, %s: %v", name, tls.VersionName(version), err)
	}
	if len(state.OCSPResponse) == 0 {
		return nil
	}
	response, err := ocsp.ParseResponseForCert(state.OCSPResponse, state.PeerCertificates[0], authority.Intermediate)
	if err != nil {
		t.Fatalf("%s, %s: the OCSP response: %v", name, tls.VersionName(version), err)
	}
	// NGINX's clock may be a little behind.
	if response.NextUpdate.Before(began.Add(-100 * time.Millisecond)) {
		t.Fatalf("%s showed at %v an OCSP response until %v", name, began, response.NextUpdate)
	}
	return response
}

// eachVersion expects that a name comes to have an OCSP response, or to have none, with
// all versions of TLS.
func eachVersion(t *testing.T, g *headgatetest.Instance, authority *pkitest.Authority, name string, has bool) {
	t.Helper()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		headgatetest.Eventually(t, name+" has the right OCSP response with "+tls.VersionName(version), func() bool {
			return (ocspResponse(t, g, authority, name, version) != nil) == has
		})
	}
}

// TestStapling: OCSP answers come with the certificates, are renewed, and are
// never shown when they are stale or of another certificate.
func TestStapling(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	authority := pkitest.New(t)
	// Of whole seconds, as OCSP has them.
	authority.Respond(authority.Good(12 * time.Second))
	g := headgatetest.Start(t, headgatetest.Options{DefaultCertificate: "main", Manifests: served("a", headgatetest.StartEcho(t, "a")) + headgatetest.Config("enable-ocsp: true") +
		headgatetest.TLSSecret("main", pairOf(authority.Issue("main.test"))) + headgatetest.TLSSecret("tls", pairOf(authority.Issue("a.test"))) +
		headgatetest.TLSSecret("self", headgatetest.NewKeyPair(t, "self", "self.test")) +
		headgatetest.WithTLS(headgatetest.Ingress("web", "a.test", "/", "a"), "tls a.test") +
		headgatetest.WithTLS(headgatetest.Ingress("self", "self.test", "/", "a"), "self self.test")})
	eachVersion(t, g, authority, "a.test", true)
	eachVersion(t, g, authority, "unknown.test", true)
	eachVersion(t, g, authority, "self.test", false)

	first := ocspResponse(t, g, authority, "a.test", tls.VersionTLS13)
	if first == nil {
		t.Fatal("the OCSP response went away")
	}
	headgatetest.Eventually(t, "the answer is renewed before it is stale", func() bool {
		newer := ocspResponse(t, g, authority, "a.test", tls.VersionTLS13)
		if newer == nil {
			t.Fatal("the OCSP response went away")
		}
		return newer.NextUpdate.After(first.NextUpdate)
	})

	// A renewed certificate has no old OCSP response: that is checked with each
	// handshake.
	for range 5 {
		g.Apply(headgatetest.TLSSecret("tls", pairOf(authority.Issue("a.test"))))
		for range 5 {
			ocspResponse(t, g, authority, "a.test", tls.VersionTLS13)
		}
	}
	eachVersion(t, g, authority, "a.test", true)

	authority.Respond(pkitest.Fails(http.StatusInternalServerError))
	eachVersion(t, g, authority, "a.test", false)
	authority.Respond(authority.Good(time.Hour))
	g.Apply(headgatetest.TLSSecret("tls", pairOf(authority.Issue("a.test"))))
	eachVersion(t, g, authority, "a.test", true)
	g.Apply(headgatetest.Config("enable-ocsp: false"))
	eachVersion(t, g, authority, "a.test", false)
	asked := authority.Asked()
	g.Apply(headgatetest.TLSSecret("tls", pairOf(authority.Issue("a.test"))))
	eachVersion(t, g, authority, "a.test", false)
	if n := authority.Asked(); n != asked {
		t.Errorf("%d questions while stapling is off", n-asked)
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}

// TestChainCompletion: issuers that tls.crt lacks are fetched, and a client
// that knows only the root is content.
func TestChainCompletion(t *testing.T) {
	t.Parallel()
	authority := pkitest.New(t)
	lone := func() headgatetest.KeyPair {
		pair := authority.Issue("a.test")
		return headgatetest.KeyPair{Certificate: pair.Certificate, Key: pair.Key}
	}
	manifests := served("a", headgatetest.StartEcho(t, "a")) + headgatetest.TLSSecret("tls", lone()) + headgatetest.Config("enable-ocsp: true") +
		headgatetest.WithTLS(headgatetest.Ingress("web", "a.test", "/", "a"), "tls a.test")
	roots := x509.NewCertPool()
	roots.AddCert(authority.Root)
	trusted := func(g *headgatetest.Instance) bool {
		state, err := shake(t, g, &tls.Config{ServerName: "a.test"})
		if err != nil {
			t.Fatal(err)
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
			if c.Equal(authority.Root) {
				t.Error("the root is sent")
			}
		}
		_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: "a.test", Roots: roots, Intermediates: between})
		return err == nil
	}
	g := headgatetest.Start(t, headgatetest.Options{CompleteChains: true, Manifests: manifests})
	headgatetest.Eventually(t, "the chain is complete", func() bool { return trusted(g) })
	// With its issuer the certificate has an OCSP response too.
	eachVersion(t, g, authority, "a.test", true)
	g.Apply(headgatetest.TLSSecret("tls", lone()))
	if !trusted(g) {
		t.Error("an issuer that was fetched before is not used at once")
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
	plain := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	if trusted(plain) {
		t.Error("the chain is complete without being asked for")
	}
}

// TestOCSPResponseEnds: a worker stops showing an OCSP response that has ended,
// though it is not removed, and a broken one fails no handshake.
func TestOCSPResponseEnds(t *testing.T) {
	t.Parallel()
	authority := pkitest.New(t)
	pair := authority.Issue("a.test")
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	template, signer, key, _ := authority.Good(time.Hour)(pair.Leaf.SerialNumber)
	response, err := ocsp.CreateResponse(authority.Intermediate, signer, template, key)
	if err != nil {
		t.Fatal(err)
	}
	put := func(units ...unit.Unit) {
		t.Helper()
		var entries []unit.Change
		for _, u := range units {
			entries = append(entries, unit.Change{Kind: u.Kind, Name: u.Name, Version: u.Version, Payload: u.Payload})
		}
		push(t, g, entries...)
	}
	certificate := unit.FromCertificate(model.DefaultCertificate, "", model.Certificate{Hash: "abc", Chain: []byte(pair.Chain), Key: []byte(pair.Key)})
	until := func(end time.Time) unit.Unit {
		return unit.FromOCSPResponse(model.OCSPResponse{Certificate: "abc", Response: response, Until: end})
	}
	put(certificate, until(time.Now().Add(time.Hour)))
	if ocspResponse(t, g, authority, "a.test", tls.VersionTLS13) == nil {
		t.Error("no OCSP response at first")
	}
	end := time.Now().Add(2 * time.Second)
	put(until(end))
	headgatetest.Eventually(t, "the OCSP response ends", func() bool { return ocspResponse(t, g, authority, "a.test", tls.VersionTLS13) == nil })
	if time.Now().Before(end.Truncate(time.Second)) {
		t.Error("the OCSP response ended early")
	}
	broken := until(time.Now().Add(time.Hour))
	broken.Payload, broken.Version = []byte(`{"response":7}`), "b"
	put(broken)
	if _, err := shake(t, g, &tls.Config{ServerName: "a.test"}); err != nil {
		t.Errorf("with a broken OCSP response: %v", err)
	}
	put(until(time.Now().Add(time.Hour)))
	if _, err := shake(t, g, &tls.Config{ServerName: "a.test"}); err != nil {
		t.Error(err)
	}
}
