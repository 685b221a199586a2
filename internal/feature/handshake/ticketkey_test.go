package handshake_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// key is one of some bytes that differ by n.
func key(n byte, size int) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, size))
}

// resumes makes a connection with what the cache has, and reports whether a session was resumed.
func resumes(t *testing.T, g *headgatetest.Instance, version uint16, cache tls.ClientSessionCache) bool {
	t.Helper()
	connection, err := tls.Dial("tcp", headgatetest.Address(g.HTTPS), &tls.Config{
		ServerName: "a.test", InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, ClientSessionCache: cache,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(headgatetest.Timeout)); err != nil {
		t.Fatal(err)
	}
	// The ticket of TLS 1.3 comes with the answer.
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(connection); err != nil {
		t.Fatal(err)
	}
	return connection.ConnectionState().DidResume
}

// Replicas with one key take each other's tickets, and after a rotation those of the old key.
func TestTicketKeys(t *testing.T) {
	t.Parallel()
	start := func(keys string) *headgatetest.Instance {
		return headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: config(keys)})
	}
	first, second := key(1, 80), key(2, 48)
	one, other := start(first), start(first)
	caches := map[uint16]tls.ClientSessionCache{tls.VersionTLS12: tls.NewLRUClientSessionCache(1), tls.VersionTLS13: tls.NewLRUClientSessionCache(1)}
	check := func(g *headgatetest.Instance, what string, want bool) {
		t.Helper()
		for version, cache := range caches {
			if got := resumes(t, g, version, cache); got != want {
				t.Errorf("%s: %s resumes: %v, want %v", what, tls.VersionName(version), got, want)
			}
		}
	}
	check(one, "at first", false)
	check(other, "another instance with the key", true)
	one.ApplyReloading(config(second + "," + first))
	check(one, "a new key before the old one", true)
	other.ApplyReloading(config(second))
	check(other, "the new key alone, after a rotation", true)
	other.ApplyReloading(config(first))
	check(other, "a key that the ticket was not made with", false)
	other.ApplyReloading(config("AAAA"))
	check(other, "an invalid key", false)
	for _, g := range []*headgatetest.Instance{one, other} {
		if log := g.Log.String(); strings.Contains(log, first) || strings.Contains(log, second) || strings.Contains(log, "AAAA") {
			t.Error("the log has a key")
		}
	}
	err := filepath.WalkDir(filepath.Join(one.RunDir.Path(), "files"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func config(keys string) string {
	return headgatetest.Config("ssl-session-tickets: true", "ssl-session-cache: false", "ssl-session-ticket-key: "+keys)
}
