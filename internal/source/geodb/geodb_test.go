package geodb_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/geodb"
	"github.com/headgate/headgate/internal/test/geodbtest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A follower is a Folder that runs.
type follower struct {
	folder, copies string
	log            *headgatetest.Log

	mu   sync.Mutex
	last map[string]*source.GeoDatabase
}

func follow(t *testing.T, folder string, editions []string, from geodb.Download) *follower {
	t.Helper()
	f := &follower{folder: folder, copies: t.TempDir(), log: &headgatetest.Log{}, last: map[string]*source.GeoDatabase{}}
	s := geodb.New(geodb.Settings{Path: folder, Editions: editions, Copies: f.copies, Download: from, Interval: time.Millisecond, Log: slog.New(slog.NewTextHandler(f.log, nil))})
	s.Subscribe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, func(_ context.Context, changes []source.Change) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, c := range changes {
				f.last[c.Object.GetName()] = c.Object.(*source.GeoDatabase)
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// await waits for a digest, and for a problem that has a text.
func (f *follower) await(t *testing.T, edition, digest, problem string) {
	t.Helper()
	headgatetest.Eventually(t, fmt.Sprintf("%s has the digest %q and the problem %q", edition, digest, problem), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		o := f.last[edition]
		return o != nil && o.Digest == digest && strings.Contains(o.Problem, problem) && (problem != "" || o.Problem == "")
	})
	if content, err := os.ReadFile(filepath.Join(f.copies, edition+".mmdb")); digest != "" && (err != nil || digestOf(content) != digest) {
		t.Errorf("the copy is another one: %v, %s", err, digestOf(content))
	}
}

func digestOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content))[:32] }

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is not a whole database has no copy, and the last copy stays.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	name := filepath.Join(folder, "GeoLite2-ASN.mmdb")
	f := follow(t, folder, []string{"GeoLite2-ASN"}, geodb.Download{})
	f.await(t, "GeoLite2-ASN", "", "GeoLite2-ASN.mmdb does not exist")
	write(t, name, nil)
	f.await(t, "GeoLite2-ASN", "", "is not a database")
	one, two := geodbtest.ASN(t, "one"), geodbtest.ASN(t, "two")
	write(t, name, one)
	f.await(t, "GeoLite2-ASN", digestOf(one), "")
	first, err := os.Stat(filepath.Join(f.copies, "GeoLite2-ASN.mmdb"))
	if err != nil || first.Mode().Perm() != 0o644 {
		t.Fatalf("workers can't read the copy: %v %v", err, first)
	}
	for cut := 1; cut < len(two); cut += len(two) / 7 {
		write(t, name, two[:len(two)-cut])
		f.await(t, "GeoLite2-ASN", digestOf(one), "is not a database")
		write(t, name, one)
		f.await(t, "GeoLite2-ASN", digestOf(one), "")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	f.await(t, "GeoLite2-ASN", digestOf(one), "does not exist")
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	f.await(t, "GeoLite2-ASN", digestOf(one), "not a file")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	write(t, name, two)
	f.await(t, "GeoLite2-ASN", digestOf(two), "")
	// NGINX compares seconds.
	second, err := os.Stat(filepath.Join(f.copies, "GeoLite2-ASN.mmdb"))
	if err != nil || second.ModTime().Unix() <= first.ModTime().Unix() {
		t.Errorf("the second copy is not newer: %v, %v", err, second)
	}
	if err := os.Remove(filepath.Join(f.copies, "GeoLite2-ASN.mmdb")); err != nil {
		t.Fatal(err)
	}
	headgatetest.Eventually(t, "the copy is made again", func() bool {
		_, err := os.Stat(filepath.Join(f.copies, "GeoLite2-ASN.mmdb"))
		return err == nil
	})
	f.await(t, "GeoLite2-ASN", digestOf(two), "")
	if left, err := filepath.Glob(filepath.Join(f.copies, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

// Hostile files neither end the program nor take long.
func FuzzVerify(f *testing.F) {
	whole := geodbtest.City(f, "a")
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("\xab\xcd\xefMaxMind.com"))
	f.Fuzz(func(t *testing.T, content []byte) {
		name := filepath.Join(t.TempDir(), "x.mmdb")
		write(t, name, content)
		_ = geodb.Verify(name)
	})
}

const key = "s3cret-key"

// A server speaks MaxMind's protocol, and that of mirrors.
type server struct {
	archives map[string][]byte
	// fails is how many requests are answered with status first, and wrong has digests be wrong.
	fails, status int
	wrong         bool
	bare          bool

	mu    sync.Mutex
	asked []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.String())
	if s.fails > 0 {
		s.fails--
		w.WriteHeader(s.status)
		return
	}
	q := r.URL.Query()
	name := strings.TrimPrefix(r.URL.Path, "/mirror/")
	if r.URL.Path == "/app/geoip_download" {
		if q.Get("license_key") != key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		name = q.Get("edition_id") + "." + q.Get("suffix")
		if !strings.HasSuffix(name, ".sha256") && q.Get("again") == "" {
			// As MaxMind's, it is stored elsewhere.
			http.Redirect(w, r, r.URL.String()+"&again=1", http.StatusFound)
			return
		}
	}
	archive, ok := s.archives[strings.TrimSuffix(strings.TrimSuffix(name, ".sha256"), ".tar.gz")]
	if !ok || s.bare && strings.HasSuffix(name, ".sha256") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if strings.HasSuffix(name, ".sha256") {
		digest := fmt.Sprintf("%x", sha256.Sum256(archive))
		if s.wrong {
			digest = strings.Repeat("0", 64)
		}
		fmt.Fprintf(w, "%s  %s\n", digest, "GeoLite2_20261124.tar.gz")
		return
	}
	_, _ = w.Write(archive)
}

// archive is a tar.gz as MaxMind has it.
func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDownload(t *testing.T) {
	t.Parallel()
	city, asn := geodbtest.City(t, "downloaded"), geodbtest.ASN(t, "downloaded")
	archives := map[string][]byte{
		"GeoLite2-City": archive(t, map[string][]byte{"GeoLite2-City_20261124/COPYRIGHT.txt": []byte("x"), "GeoLite2-City_20261124/GeoLite2-City.mmdb": city}),
		"GeoLite2-ASN":  archive(t, map[string][]byte{"GeoLite2-ASN_20261124/GeoLite2-ASN.mmdb": asn}),
	}
	for name, c := range map[string]struct {
		server  *server // of the usual kind if it is nil
		from    geodb.Download
		problem string // of GeoLite2-City; both are there if it is empty
		asked   int
	}{
		"MaxMind":             {from: geodb.Download{LicenseKey: key}, asked: 6},
		"mirror":              {from: geodb.Download{Mirror: "mirror/"}, asked: 4},
		"mirror without sums": {server: &server{bare: true}, from: geodb.Download{Mirror: "mirror"}, asked: 4},
		"wrong key":           {from: geodb.Download{LicenseKey: "other-key", Attempts: 5, Pause: time.Millisecond}, problem: "its download failed: refused: the server answers 401", asked: 2},
		"second attempt":      {server: &server{fails: 2, status: 503}, from: geodb.Download{LicenseKey: key, Attempts: 3, Pause: time.Millisecond}, asked: 8},
		"no second attempt":   {server: &server{fails: 9, status: 503}, from: geodb.Download{LicenseKey: key, Attempts: 3}, problem: "its download failed: the server answers 503", asked: 2},
		"few attempts":        {server: &server{fails: 9, status: 429}, from: geodb.Download{LicenseKey: key, Attempts: 2, Pause: time.Millisecond}, problem: "its download failed: the server answers 429", asked: 4},
		"wrong digest":        {server: &server{wrong: true}, from: geodb.Download{LicenseKey: key}, problem: "does not have the digest", asked: 6},
		"no archive":          {server: &server{archives: map[string][]byte{"GeoLite2-City": []byte("x"), "GeoLite2-ASN": []byte("x")}}, from: geodb.Download{Mirror: "mirror"}, problem: "read the archive", asked: 4},
		"other file":          {server: &server{archives: map[string][]byte{"GeoLite2-City": archives["GeoLite2-ASN"], "GeoLite2-ASN": nil}}, from: geodb.Download{Mirror: "mirror"}, problem: "it has no file GeoLite2-City.mmdb", asked: 4},
		"no database":         {server: &server{archives: map[string][]byte{"GeoLite2-City": archive(t, map[string][]byte{"GeoLite2-City.mmdb": []byte("x")})}}, from: geodb.Download{Mirror: "mirror"}, problem: "read the database", asked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.server
			if s == nil {
				s = &server{}
			}
			if s.archives == nil {
				s.archives = archives
			}
			listening := httptest.NewServer(s)
			t.Cleanup(listening.Close)
			if c.from.Server = listening.URL; c.from.Mirror != "" {
				c.from.Mirror = listening.URL + "/" + c.from.Mirror
			}
			folder := filepath.Join(t.TempDir(), "made", "here")
			f := follow(t, folder, []string{"GeoLite2-City", "GeoLite2-ASN"}, c.from)
			if c.problem == "" {
				f.await(t, "GeoLite2-City", digestOf(city), "")
				f.await(t, "GeoLite2-ASN", digestOf(asn), "")
			} else {
				f.await(t, "GeoLite2-City", "", c.problem)
			}
			headgatetest.Eventually(t, "all is asked", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.asked) == c.asked
			})
			if left, err := filepath.Glob(filepath.Join(folder, ".archive-*")); c.problem == "" && (err != nil || len(left) > 0) {
				t.Errorf("left over: %v %v", left, err)
			}
			if strings.Contains(f.log.String(), "-key") {
				t.Errorf("the log has the key:\n%s", f.log)
			}
		})
	}
}

// An unreachable server's error has no key either, and what is there stays.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	listening := httptest.NewServer(http.NotFoundHandler())
	listening.Close()
	folder := t.TempDir()
	asn := geodbtest.ASN(t, "old")
	write(t, filepath.Join(folder, "GeoLite2-ASN.mmdb"), asn)
	f := follow(t, folder, []string{"GeoLite2-ASN"}, geodb.Download{LicenseKey: key, Server: listening.URL})
	f.await(t, "GeoLite2-ASN", digestOf(asn), "")
	headgatetest.Eventually(t, "it is logged", func() bool { return strings.Contains(f.log.String(), "downloading a GeoIP database failed") })
	if strings.Contains(f.log.String(), key) {
		t.Errorf("the log has the key:\n%s", f.log)
	}
}
