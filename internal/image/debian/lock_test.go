package debian_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/image/debian"
)

func TestLock(t *testing.T) {
	l := debian.Lock{Architecture: "arm64", At: time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC), Packages: []debian.Package{
		{Name: "a", Version: "1:2.0-3+b1", Size: 10, SHA256: "00ff", Path: "debian/pool/main/a/a_2.0-3+b1_arm64.deb"},
	}}
	var text bytes.Buffer
	if err := l.Write(&text); err != nil {
		t.Fatal(err)
	}
	if got, err := debian.ReadLock(&text); err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"architecture amd64\n":                                     "no line with",
		"architecture amd64\nat 20261123T060000Z\na 1 2\n":         "line 3: 3 words",
		"architecture amd64\nat yesterday\n":                       "line 2:",
		"architecture amd64\nat 20261123T060000Z\na 1 many 00 p\n": "line 3:",
	} {
		if _, err := debian.ReadLock(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestFetch: a package comes from the mirror, else from the snapshots, and only with the
// right hash. It is fetched once.
func TestFetch(t *testing.T) {
	t.Parallel()
	content := []byte("a package")
	sum := sha256.Sum256(content)
	p := debian.Package{Name: "a", Version: "1", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Path: "debian/pool/a.deb"}
	at := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	var asked []string
	answers := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if body, ok := answers[r.URL.Path]; ok {
			_, _ = w.Write([]byte(body))
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	m := debian.Mirror{URL: server.URL, Snapshots: server.URL, Cache: t.TempDir()}
	ctx := context.Background()

	if _, err := m.Fetch(ctx, p, at); err == nil || !strings.Contains(err.Error(), "make image-lock") {
		t.Errorf("a package that is nowhere: %v", err)
	}
	const snapshot = "/archive/debian/20261123T060000Z/pool/a.deb"
	answers["/debian/pool/a.deb"], answers[snapshot] = "b package", "a packagf"
	if _, err := m.Fetch(ctx, p, at); err == nil || strings.Count(err.Error(), "has the SHA-256 hash") != 2 {
		t.Errorf("other bytes: %v", err)
	}
	answers[snapshot] = string(content)
	asked = nil
	for range 2 {
		file, err := m.Fetch(ctx, p, at)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got := strings.Join(asked, " "); got != "/debian/pool/a.deb "+snapshot {
		t.Errorf("asked for %s", got)
	}
}
