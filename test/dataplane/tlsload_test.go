package dataplane_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// leafOf makes a whole handshake and returns the certificate that was shown.
func leafOf(port uint16, serverName string) (string, error) {
	plain, err := net.DialTimeout("tcp", headgatetest.Address(port), headgatetest.Timeout)
	if err != nil {
		return "", err
	}
	defer plain.Close()
	if err := plain.SetDeadline(time.Now().Add(headgatetest.Timeout)); err != nil {
		return "", err
	}
	connection := tls.Client(plain, &tls.Config{ServerName: serverName, InsecureSkipVerify: true})
	if err := connection.Handshake(); err != nil {
		return "", fmt.Errorf("handshake: %w", err)
	}
	leaf := connection.ConnectionState().PeerCertificates[0].Raw
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf})), nil
}

// A certificate that is renewed again and again, with keys of both kinds, fails
// no handshake, and the first one after a change sees it.
func TestCertificateChangesUnderLoad(t *testing.T) {
	t.Parallel()
	var pairs []headgatetest.KeyPair
	valid := map[string]bool{}
	for i := range 4 {
		pair := authority{}.sign(t, fmt.Sprint("pair", i), newKey(t, i%2 == 1), "a.test").pair(t)
		pairs, valid[pair.Certificate] = append(pairs, pair), true
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", pairs[0]) + headgatetest.TLSSecret("other", headgatetest.NewKeyPair(t, "other", "b.test")) +
		securedHost("a", "a.test") + headgatetest.WithTLS(headgatetest.Ingress("b", "b.test", "/", "a"), "other b.test")})
	load := startLoad(t, 4, func(int) func() error {
		return func() error {
			leaf, err := leafOf(g.HTTPS, "a.test")
			if err == nil && !valid[leaf] {
				err = fmt.Errorf("a certificate of another name: %s", leaf)
			}
			return err
		}
	})
	for i := range 60 {
		next := pairs[(i+1)%len(pairs)]
		g.Apply(headgatetest.TLSSecret("tls", next))
		for range 3 {
			if leaf, err := leafOf(g.HTTPS, "a.test"); err != nil || leaf != next.Certificate {
				t.Fatalf("change %d: %v, another certificate than the newest", i, err)
			}
		}
	}
	load.wantNoneWrong(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}

// anonymous is the memory of a process that is in no file and shared with
// no process but the one that it was forked from, in bytes.
func anonymous(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nRssAnon:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// manyCertificates are units of hosts 0.test to N.test with a certificate each,
// which differ by their names only.
func manyCertificates(t *testing.T, profile model.Profile, n int) []unit.Change {
	t.Helper()
	var entries []unit.Change
	add := func(u unit.Unit) {
		entries = append(entries, unit.Change{Kind: u.Kind, Name: u.Name, Needs: 1, Version: u.Version, Owner: u.Owner, Payload: u.Payload})
	}
	add(unit.FromHost(model.Host{Name: "all", Routes: []model.Route{{Kind: model.Prefix, Path: "/", Profile: profile}}}))
	pair := headgatetest.NewKeyPair(t, "any", "*.test")
	for i := range n {
		name, hash := fmt.Sprintf("%d.test", i), strconv.Itoa(i)
		add(unit.FromCertificate("", "", model.Certificate{Hash: hash, Chain: []byte(pair.Certificate), Key: model.PrivateKey(pair.Key)}))
		add(unit.FromName(model.Name{Name: name, Host: "all", HasTLS: true, Certificate: hash}))
	}
	return entries
}

// A worker pays for the certificates that its clients ask for, not for those
// that there are.
func TestWorkerHoldsCertificatesInUse(t *testing.T) {
	t.Parallel()
	const many, used = 10_000, 20
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	push := func(entries []unit.Change) {
		t.Helper()
		if _, err := g.Client.Push(t.Context(), 1, 1, entries); err != nil {
			t.Fatal(err)
		}
	}
	entries := manyCertificates(t, model.Profile{}, many)
	// What the first push and the first handshakes take, they take once.
	push(entries[:1+2*used])
	shake := func(first, n int) {
		t.Helper()
		for i := first; i < first+n; i++ {
			if _, err := leafOf(g.HTTPS, fmt.Sprintf("%d.test", i)); err != nil {
				t.Fatalf("%d.test: %v", i, err)
			}
		}
	}
	for range 10 {
		shake(0, used)
	}
	pid := g.State().PID
	before := anonymous(t, pid)
	push(entries[1+2*used:])
	pushed := anonymous(t, pid)
	for range 10 {
		shake(0, used)
	}
	after := anonymous(t, pid)
	if got := g.State(); got.Cache.Units > 2*used+5 || got.Memory.Certificates.Capacity-got.Memory.Certificates.Free < many*512 {
		t.Errorf("the worker holds %d units; certificates take %d bytes", got.Cache.Units, got.Memory.Certificates.Capacity-got.Memory.Certificates.Free)
	}
	const mib = 1 << 20
	t.Logf("private memory: %.1f MiB, with %d certificates pushed %.1f, after handshakes %.1f",
		float64(before)/mib, many, float64(pushed)/mib, float64(after)/mib)
	if after-before > 4*mib {
		t.Errorf("the worker's memory grew by %d bytes, for certificates that no client asks for", after-before)
	}
	// The test would see it if a worker held what no client asks for.
	shake(used, 1000)
	if grown := anonymous(t, pid) - after; grown < 2*mib {
		t.Errorf("1,000 certificates in use take %d bytes: this measures something else", grown)
	}
}
