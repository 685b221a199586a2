package dataplane_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const fakeName = "Kubernetes Ingress Controller Fake Certificate"

// shake opens a TLS connection and returns its state, or why there is none.
func shake(t *testing.T, g *headgatetest.Instance, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	config.InsecureSkipVerify = true
	connection := tls.Client(headgatetest.Dial(t, g.HTTPS), config)
	err := connection.Handshake()
	return connection.ConnectionState(), err
}

// shown is the common name of the certificate shown for a name.
func shown(t *testing.T, g *headgatetest.Instance, serverName string) string {
	t.Helper()
	state, err := shake(t, g, &tls.Config{ServerName: serverName})
	if err != nil {
		t.Errorf("%s: %v", serverName, err)
		return ""
	}
	return state.PeerCertificates[0].Subject.CommonName
}

func tlsManifests(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(served("a", headgatetest.StartEcho(t, "a")) + served("b", headgatetest.StartEcho(t, "b")))
	for _, c := range []struct{ name, names string }{
		{"exact", "exact.test"}, {"wild", "*.w.test"}, {"below", "below.w.test"}, {"wrong", "other.test"}, {"multi", "m1.test m2.test"},
	} {
		b.WriteString(headgatetest.TLSSecret(c.name, headgatetest.NewKeyPair(t, c.name, strings.Fields(c.names)...)))
	}
	mixed := headgatetest.NewKeyPair(t, "mixed", "mixed.test")
	mixed.Key = headgatetest.NewKeyPair(t, "x", "x").Key
	b.WriteString(headgatetest.TLSSecret("mixed", mixed))
	b.WriteString(headgatetest.TLSSecret("rubbish", headgatetest.KeyPair{Certificate: "rubbish", Key: "rubbish"}))
	for _, c := range []struct{ host, service, entry string }{
		{"exact.test", "a", "exact exact.test"}, {"b.test", "b", ""}, {"*.w.test", "a", "wild *.w.test"},
		{"below.w.test", "b", "below below.w.test"}, {"plain.w.test", "b", ""}, {"wrong.test", "a", "wrong wrong.test"},
		{"mixed.test", "a", "mixed mixed.test"}, {"rubbish.test", "a", "rubbish rubbish.test"}, {"missing.test", "a", "nope missing.test"},
		{"unnamed.test", "a", "- unnamed.test"}, {"m2.test", "a", "multi"},
	} {
		ingress := headgatetest.Ingress(strings.NewReplacer("*", "any", ".", "-").Replace(c.host), c.host, "/", c.service)
		if c.entry != "" {
			ingress = headgatetest.WithTLS(ingress, c.entry)
		}
		b.WriteString(ingress)
	}
	return b.String()
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: tlsManifests(t)})
	for serverName, want := range map[string]string{
		"exact.test": "exact", "EXACT.Test": "exact", "b.test": fakeName, "": fakeName, "unknown.test": fakeName, "x.exact.test": fakeName,
		"x.w.test": "wild", "a-b.w.test": "wild", "X.W.TEST": "wild", "a.b.w.test": fakeName, "w.test": fakeName,
		"below.w.test": "below",
		// A host without TLS of its own is covered by the wildcard.
		"plain.w.test": "wild",
		"wrong.test":   fakeName, "mixed.test": fakeName, "rubbish.test": fakeName, "missing.test": fakeName, "unnamed.test": fakeName,
		// Found by the certificate's names.
		"m2.test": "multi",
	} {
		t.Run("shown for "+serverName, func(t *testing.T) {
			t.Parallel()
			if got := shown(t, g, serverName); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("versions", func(t *testing.T) {
		t.Parallel()
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			state, err := shake(t, g, &tls.Config{ServerName: "exact.test", MinVersion: version, MaxVersion: version})
			if err != nil || state.Version != version || state.PeerCertificates[0].Subject.CommonName != "exact" {
				t.Errorf("%s: %v", tls.VersionName(version), err)
			}
		}
		if _, err := shake(t, g, &tls.Config{ServerName: "exact.test", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
			t.Error("TLS 1.1 was spoken")
		}
	})
	t.Run("ALPN", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ offered, want string }{{"h2 http/1.1", "h2"}, {"http/1.1", "http/1.1"}, {"", ""}} {
			state, err := shake(t, g, &tls.Config{ServerName: "exact.test", NextProtos: strings.Fields(c.offered)})
			if err != nil || state.NegotiatedProtocol != c.want {
				t.Errorf("offered %q: got %q, %v", c.offered, state.NegotiatedProtocol, err)
			}
		}
		for _, http2 := range []bool{false, true} {
			r := g.Do(headgatetest.Request{Scheme: "https", Host: "exact.test", HTTP2: http2}).WantStatus(t, 200)
			if (r.Proto == "HTTP/2.0") != http2 || r.Echo == nil || r.Echo.Proto != "HTTP/1.1" {
				t.Errorf("HTTP/2 %v: answered over %s", http2, r.Proto)
			}
		}
	})
	t.Run("the generated certificate", func(t *testing.T) {
		t.Parallel()
		state, err := shake(t, g, &tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		leaf := state.PeerCertificates[0]
		if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "ingress.local" || leaf.NotAfter.Before(time.Now().Add(364*24*time.Hour)) {
			t.Errorf("names %v, until %v", leaf.DNSNames, leaf.NotAfter)
		}
	})
	t.Run("SNI and Host differ", func(t *testing.T) {
		t.Parallel()
		checkHostBesidesSNI(t, g, "exact.test", "b.test", "b")
		checkHostBesidesSNI(t, g, "b.test", "exact.test", "a")
	})
}

// checkHostBesidesSNI expects that a request goes where its Host says.
func checkHostBesidesSNI(t *testing.T, g *headgatetest.Instance, serverName, host, backend string) {
	t.Helper()
	for _, http2 := range []bool{false, true} {
		client := g.NewClient(http2)
		client.Transport.(*http.Transport).TLSClientConfig.ServerName = serverName
		r, err := g.Try(client, headgatetest.Request{Scheme: "https", Host: host})
		client.CloseIdleConnections()
		if err != nil || r.Echo == nil || r.Echo.Backend != backend {
			t.Errorf("SNI %s, Host %s, HTTP/2 %v: %v, %+v", serverName, host, http2, err, r)
		}
	}
}

func TestCertificatesChangeAtOnce(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "one", "a.test")) +
		headgatetest.WithTLS(headgatetest.Ingress("web", "a.test", "/", "a"), "tls a.test") + served("a", headgatetest.StartEcho(t, "a"))})
	// Several handshakes, so that each worker is met.
	expect := func(want string) {
		t.Helper()
		for range 6 {
			if got := shown(t, g, "a.test"); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	expect("one")
	renewed := headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "two", "a.test"))
	g.Apply(renewed)
	expect("two")
	g.Delete(renewed)
	expect(fakeName)
	g.Get("a.test", "/").WantStatus(t, 308)
	g.Apply(renewed)
	expect("two")
	g.Apply(headgatetest.Ingress("web", "a.test", "/", "a"))
	expect(fakeName)
	g.Get("a.test", "/").WantStatus(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}

// Private keys stay in memory: neither frames of 16 KB and more nor units in
// parts leave a byte of them in a file.
func TestKeysNeverReachTheDisk(t *testing.T) {
	t.Parallel()
	accessLog := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{AccessLog: accessLog, Timing: headgatetest.Hasty(), Manifests: served("a", headgatetest.StartEcho(t, "a"))})
	pair := headgatetest.NewKeyPair(t, "long", "long.test")
	var manifests strings.Builder
	pairs := []headgatetest.KeyPair{pair}
	for i := range 100 {
		name := "h" + strconv.Itoa(i)
		p := headgatetest.NewKeyPair(t, name, name+".test")
		pairs = append(pairs, p)
		manifests.WriteString(headgatetest.TLSSecret(name, p) + headgatetest.WithTLS(headgatetest.Ingress(name, name+".test", "/", "a"), name+" "+name+".test"))
	}
	// One unit of more than a frame.
	long := headgatetest.KeyPair{Certificate: pair.Certificate + strings.Repeat(headgatetest.NewKeyPair(t, "ca", "ca").Certificate, 700), Key: pair.Key}
	if len(long.Certificate) < 256<<10 {
		t.Fatalf("a chain of only %d bytes", len(long.Certificate))
	}
	manifests.WriteString(headgatetest.TLSSecret("long", long) + headgatetest.WithTLS(headgatetest.Ingress("long", "long.test", "/", "a"), "long long.test"))
	g.Apply(manifests.String())
	if got := shown(t, g, "h7.test"); got != "h7" {
		t.Fatalf("h7.test showed %q: the keys are not there", got)
	}
	if state, err := g.Client.State(t.Context()); err != nil || state.Memory.Certificates.Capacity-state.Memory.Certificates.Free < 256<<10 {
		t.Fatalf("the certificates are not in the shared memory: %+v, %v", state.Memory, err)
	}
	// A reload must not write them either.
	g.ApplyReloading(headgatetest.Ingress("named", "named.test", "/", "a", "proxy-body-size: 3m"))
	// NGINX deletes such a file when its request ends, but says that it wrote
	// one.
	if log := g.Log.String(); strings.Contains(log, "temporary file") {
		t.Error("NGINX put a pushed body into a file")
	}
	for _, pair := range pairs {
		if strings.Contains(g.Log.String(), keyLine(pair)) {
			t.Error("the log holds a key")
			break
		}
	}
	checkNoKeys(t, pairs, g.RunDir.Path(), filepath.Dir(accessLog))
}

// keyLine is a part of a key that stands on one line of its PEM.
func keyLine(pair headgatetest.KeyPair) string { return strings.Split(pair.Key, "\n")[1] }

func checkNoKeys(t *testing.T, pairs []headgatetest.KeyPair, dirs ...string) {
	t.Helper()
	files := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			for _, pair := range pairs {
				block, _ := pem.Decode([]byte(pair.Key))
				if bytes.Contains(content, []byte(keyLine(pair))) || bytes.Contains(content, block.Bytes) || bytes.Contains(content, []byte("PRIVATE KEY")) {
					t.Errorf("%s holds a key", path)
					return nil
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 10 {
		t.Errorf("only %d files were looked at", files)
	}
}
