package dataplane_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// TestDefaultCertificate: the administrator's certificate comes, is renewed and
// goes without a reload, and is shown wherever no other fits.
func TestDefaultCertificate(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{DefaultCertificate: "main", Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("own", headgatetest.NewKeyPair(t, "own", "own.test")) +
		headgatetest.WithTLS(headgatetest.Ingress("own", "own.test", "/", "a"), "own own.test") +
		headgatetest.WithTLS(headgatetest.Ingress("missing", "missing.test", "/", "a"), "nope missing.test") +
		headgatetest.WithTLS(headgatetest.Ingress("unnamed", "unnamed.test", "/", "a"), "- unnamed.test")})
	expect := func(want string) {
		t.Helper()
		for _, name := range []string{"missing.test", "unnamed.test", "unknown.test", ""} {
			// Several handshakes, so that each worker is met.
			for range 4 {
				if got := shown(t, g, name); got != want {
					t.Fatalf("%q showed %q, want %q", name, got, want)
				}
			}
		}
		if got := shown(t, g, "own.test"); got != "own" {
			t.Fatalf("own.test showed %q", got)
		}
	}
	const logged = "field=--default-ssl-certificate"
	expect(fakeName)
	if !strings.Contains(g.Log.String(), logged) {
		t.Error("the missing Secret is not reported")
	}
	one, two := headgatetest.TLSSecret("main", headgatetest.NewKeyPair(t, "one", "else.test")), headgatetest.TLSSecret("main", headgatetest.NewKeyPair(t, "two", "else.test"))
	g.Apply(one)
	expect("one")
	g.Apply(two)
	expect("two")
	g.Apply(headgatetest.TLSSecret("main", headgatetest.KeyPair{Certificate: "rubbish", Key: "rubbish"}))
	expect(fakeName)
	g.Apply(one)
	expect("one")
	g.Delete(one)
	expect(fakeName)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}

// TestRenewedUnderLoad: no handshake fails while certificates change, and each
// shows one that there was.
func TestRenewedUnderLoad(t *testing.T) {
	t.Parallel()
	renewed := func(name string) string {
		return headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, name, "a.test")) + headgatetest.TLSSecret("main", headgatetest.NewKeyPair(t, name, "else.test"))
	}
	g := headgatetest.Start(t, headgatetest.Options{DefaultCertificate: "main", Manifests: served("a", headgatetest.StartEcho(t, "a")) + renewed("0") +
		headgatetest.WithTLS(headgatetest.Ingress("web", "a.test", "/", "a"), "tls a.test")})
	l := startLoad(t, 2, func(worker int) func() error {
		name := []string{"a.test", "unknown.test"}[worker%2]
		return func() error {
			connection, err := tls.Dial("tcp", headgatetest.Address(g.HTTPS), &tls.Config{ServerName: name, InsecureSkipVerify: true})
			if err != nil {
				return err
			}
			defer connection.Close()
			if shown := connection.ConnectionState().PeerCertificates[0].Subject.CommonName; len(shown) > 2 {
				return fmt.Errorf("%s showed %q", name, shown)
			}
			return nil
		}
	})
	n := 0
	headgatetest.Eventually(t, "there were some renewals and handshakes", func() bool {
		g.Apply(renewed(strconv.Itoa(n % 100)))
		n++
		l.mu.Lock()
		defer l.mu.Unlock()
		return n >= 30 && l.asked >= 50
	})
	l.wantNoneWrong(t, 50)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}

// TestChainAsWritten: what stands behind the first certificate is sent in its
// order, as NGINX does it.
func TestChainAsWritten(t *testing.T) {
	t.Parallel()
	authority := pkitest.New(t)
	pair := authority.Issue("a.test")
	chain := []*x509.Certificate{pair.Leaf, authority.Root, authority.Intermediate}
	var text strings.Builder
	for _, c := range chain {
		text.WriteString(pkitest.PEM(c))
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.KeyPair{Certificate: text.String(), Key: pair.Key}) +
		headgatetest.WithTLS(headgatetest.Ingress("web", "a.test", "/", "a"), "tls a.test")})
	state, err := shake(t, g, &tls.Config{ServerName: "a.test"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(state.PeerCertificates, chain, (*x509.Certificate).Equal) {
		t.Errorf("%d certificates, not those of tls.crt in their order", len(state.PeerCertificates))
	}
}
