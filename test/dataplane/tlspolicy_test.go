package dataplane_test

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// The ciphers that the tests choose from, strongest last. A Go client has them
// in this order.
const (
	weak   = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	strong = tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
)

const (
	weakName   = "ECDHE-ECDSA-AES128-GCM-SHA256"
	strongName = "ECDHE-ECDSA-AES256-GCM-SHA384"
)

// agreed is the cipher that a TLS 1.2 client and a name agree on, 0 for none.
func agreed(t *testing.T, g *headgatetest.Instance, serverName string, offered ...uint16) uint16 {
	t.Helper()
	state, err := shake(t, g, &tls.Config{ServerName: serverName, MaxVersion: tls.VersionTLS12, CipherSuites: offered})
	if err != nil {
		return 0
	}
	return state.CipherSuite
}

func securedHost(name, host string, annotations ...string) string {
	return headgatetest.WithTLS(headgatetest.Ingress(name, host, "/", "a", annotations...), "tls "+host)
}

func TestCiphersByHost(t *testing.T) {
	t.Parallel()
	names := strings.Fields("plain.test weak.test alias.test strong.test *.w.test below.w.test none.test server.test client.test")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "tls", names...)) +
		headgatetest.Config("ssl-ciphers: "+strongName+":"+weakName) +
		securedHost("plain", "plain.test") + securedHost("below", "below.w.test") +
		securedHost("weak", "weak.test", "ssl-ciphers: "+weakName, "server-alias: alias.test, ~^pattern[0-9]") +
		securedHost("strong", "strong.test", "ssl-ciphers: "+strongName) +
		securedHost("wild", "*.w.test", "ssl-ciphers: "+weakName) +
		securedHost("none", "none.test", "ssl-ciphers: NO-SUCH-CIPHER") +
		securedHost("server", "server.test", "ssl-ciphers: "+strongName+" "+weakName, "ssl-prefer-server-ciphers: true") +
		securedHost("client", "client.test", "ssl-prefer-server-ciphers: false")})
	for _, c := range []struct {
		serverName         string
		weak, strong, both uint16
	}{
		{"plain.test", weak, strong, strong},
		{"", weak, strong, strong},
		{"unknown.test", weak, strong, strong},
		{"weak.test", weak, 0, weak},
		{"WEAK.test", weak, 0, weak},
		// A name of the host, with any certificate.
		{"alias.test", weak, 0, weak},
		{"pattern1", weak, 0, weak},
		{"strong.test", 0, strong, strong},
		{"x.w.test", weak, 0, weak},
		{"X.w.Test", weak, 0, weak},
		{"below.w.test", weak, strong, strong},
		{"a.b.w.test", weak, strong, strong},
		{"none.test", 0, 0, 0},
		{"server.test", weak, strong, strong},
		{"client.test", weak, strong, weak},
	} {
		got := [3]uint16{agreed(t, g, c.serverName, weak), agreed(t, g, c.serverName, strong), agreed(t, g, c.serverName, strong, weak)}
		if want := [3]uint16{c.weak, c.strong, c.both}; got != want {
			t.Errorf("%q: %x, want %x", c.serverName, got, want)
		}
		// Ciphers of TLS 1.3 are others.
		if state, err := shake(t, g, &tls.Config{ServerName: c.serverName}); err != nil || state.Version != tls.VersionTLS13 {
			t.Errorf("%q: TLS 1.3: %v", c.serverName, err)
		}
	}
	logged := func() int {
		return strings.Count(g.Log.String(), "host none.test: the TLS library knows none of the ciphers")
	}
	headgatetest.Eventually(t, "it is logged that the host has no cipher", func() bool { return logged() > 0 })
	if n := logged(); n > 2 {
		t.Errorf("%d workers of 2 logged that the host has no cipher", n)
	}
	if strings.Contains(g.Log.String(), "ignoring stale global SSL error") {
		t.Error("an error of one connection was left for the next one")
	}
}

// Where no host has a TLS policy, handshakes don't pay for the phase. The first
// policy costs one reload, all others none.
func TestTLSPoliciesChange(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "tls", "a.test", "b.test")) + securedHost("a", "a.test")})
	expect := func(host string, want ...uint16) {
		t.Helper()
		for range 6 { // each worker is met
			if got := []uint16{agreed(t, g, host, weak), agreed(t, g, host, strong)}; !slices.Equal(got, want) {
				t.Fatalf("%s: %x, want %x", host, got, want)
			}
		}
	}
	expect("a.test", weak, strong)
	g.ApplyReloading(securedHost("a", "a.test", "ssl-ciphers: "+weakName))
	expect("a.test", weak, 0)
	before := g.Value(g.Metrics.Reloads)
	g.Apply(securedHost("a", "a.test", "ssl-ciphers: "+strongName))
	expect("a.test", 0, strong)
	g.Apply(securedHost("b", "b.test", "ssl-ciphers: "+weakName))
	expect("b.test", weak, 0)
	// The older one decides, and not what comes later.
	g.Apply(securedHost("z", "b.test", "ssl-ciphers: "+strongName))
	g.Apply(securedHost("a", "a.test"))
	expect("a.test", weak, strong)
	// A bad value denies the paths, and the host has the usual ciphers.
	g.Apply(securedHost("a", "a.test", "ssl-ciphers: HIGH; ssl_protocols SSLv3"))
	expect("a.test", weak, strong)
	g.Do(headgatetest.Request{Scheme: "https", Host: "a.test"}).WantStatus(t, 503)
	if n := g.Value(g.Metrics.Reloads); n != before {
		t.Errorf("%d reloads, want none", n-before)
	}
}

func TestProtocolVersions(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Config("ssl-protocols: TLSv1.3")})
	try := func(version uint16) error {
		_, err := shake(t, g, &tls.Config{MinVersion: version, MaxVersion: version})
		return err
	}
	if err := try(tls.VersionTLS13); err != nil {
		t.Error(err)
	}
	if err := try(tls.VersionTLS12); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2: %v", err)
	}
	g.ApplyReloading(headgatetest.Config("ssl-protocols: TLSv1.2"))
	if err := try(tls.VersionTLS12); err != nil {
		t.Error(err)
	}
	if err := try(tls.VersionTLS13); err == nil {
		t.Error("TLS 1.3 was spoken")
	}
}

func TestCurves(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Config("ssl-ecdh-curve: P-384:P-256", "ssl-ciphers: ")})
	state, err := shake(t, g, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256, tls.CurveP384}})
	if err != nil || state.CurveID != tls.CurveP384 && state.CurveID != tls.CurveP256 {
		t.Errorf("curve %v, %v", state.CurveID, err)
	}
	if _, err := shake(t, g, &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519}}); err == nil {
		t.Error("a curve that is not in the list was taken")
	}
	// Without ciphers of the ConfigMap the client's order counts.
	if got := agreed(t, g, "", strong, weak); got != weak {
		t.Errorf("cipher %x, want %x", got, weak)
	}
}

// TestCiphersThatOpenSSLLacks: Headgate starts and reloads with the defaults, and says so.
func TestCiphersThatOpenSSLLacks(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Config("ssl-ciphers: FOO")})
	invalid := func() int { return g.Value(g.Metrics.Findings.WithLabelValues("InvalidValue")) }
	if got := agreed(t, g, "", weak, strong); got != weak || invalid() != 1 {
		t.Errorf("without a known cipher: cipher %x, want %x, %v findings", got, weak, invalid())
	}
	g.ApplyReloading(headgatetest.Config("ssl-ciphers: " + strongName))
	if got := agreed(t, g, "", weak, strong); got != strong || invalid() != 0 {
		t.Errorf("with a known cipher: cipher %x, want %x, %v findings", got, strong, invalid())
	}
	g.ApplyReloading(headgatetest.Config("ssl-ciphers: " + strongName + ":@STRENGHT"))
	if got := agreed(t, g, "", weak, strong); got != weak || invalid() != 1 {
		t.Errorf("with an unknown command: cipher %x, want %x, %v findings", got, weak, invalid())
	}
	if got := g.Value(g.Metrics.ReloadFailures); got != 0 {
		t.Errorf("%v reloads failed", got)
	}
}

// Groups that NGINX has are spoken, and of those that it has not there is a
// finding: it would refuse its configuration, and serve nothing new.
func TestGroupsThatNotEveryNGINXHas(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Config("ssl-ecdh-curve: X25519MLKEM768:P-384")})
	speaks := func(group tls.CurveID) bool {
		t.Helper()
		_, err := shake(t, g, &tls.Config{CurvePreferences: []tls.CurveID{group}})
		return err == nil
	}
	lacking := g.Value(g.Metrics.Findings.WithLabelValues("MissingCapability")) == 1
	if speaks(tls.X25519MLKEM768) == lacking {
		t.Errorf("X25519MLKEM768 is spoken: %v, a finding says that it is lacking: %v", !lacking, lacking)
	}
	// Where it lacks, the default holds.
	if !speaks(tls.CurveP384) || speaks(tls.X25519) != lacking {
		t.Errorf("P-384 is spoken: %v, X25519: %v, want that only if %v", speaks(tls.CurveP384), speaks(tls.X25519), lacking)
	}
	g.ApplyReloading(headgatetest.Config("ssl-ecdh-curve: P-384"))
	if n := g.Value(g.Metrics.Findings.WithLabelValues("MissingCapability")); n != 0 || speaks(tls.X25519MLKEM768) || !speaks(tls.CurveP384) {
		t.Errorf("%v findings, or not P-384 alone", n)
	}
}

func TestUnknownNamesAreRejected(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "tls", "a.test", "*.w.test")) +
		headgatetest.Config("ssl-reject-handshake: true") +
		securedHost("a", "a.test", "server-alias: alias.test, *.other.test") + securedHost("w", "*.w.test") + headgatetest.Ingress("plain", "plain.test", "/", "a")})
	for serverName, want := range map[string]bool{
		"a.test": true, "A.test": true, "alias.test": true, "x.y.other.test": true, "x.w.test": true,
		// Without a certificate of its own a host has the default one.
		"plain.test": true,
		"":           false, "unknown.test": false, "w.test": false, "a.b.w.test": false, "_": false,
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if _, err := shake(t, g, &tls.Config{ServerName: serverName, MinVersion: version, MaxVersion: version}); (err == nil) != want {
				t.Errorf("%q, %s: %v", serverName, tls.VersionName(version), err)
			}
		}
	}
	// Only the handshake is rejected.
	g.Get("unknown.test", "/").WantStatus(t, 404)
	g.ApplyReloading(headgatetest.Config("ssl-reject-handshake: false"))
	if got := shown(t, g, "unknown.test"); got != fakeName {
		t.Errorf("got %q", got)
	}
}
