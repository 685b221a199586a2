package compression_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const tag = `"v1"`

var text = strings.Repeat("Compressed text has fewer bytes. ", 100)

// backend answers with text, as the path says: /TYPE, /TYPE?N for N bytes; /encoded is compressed already, and /STATUS
// has that status.
func backend(t *testing.T) string {
	t.Helper()
	var encoded bytes.Buffer
	w := gzip.NewWriter(&encoded)
	if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Type", strings.TrimPrefix(r.URL.Path, "/"))
		body, status := text, http.StatusOK
		if r.URL.RawQuery != "" {
			var n int
			fmt.Sscan(r.URL.RawQuery, &n)
			body = text[:n]
		}
		switch r.URL.Path {
		case "/encoded":
			w.Header().Set("Content-Type", "text/css")
			w.Header().Set("Content-Encoding", "gzip")
			body = encoded.String()
		case "/chunked":
			w.Header().Set("Content-Type", "text/css")
			w.WriteHeader(status)
			_ = http.NewResponseController(w).Flush()
		case "/404", "/500":
			w.Header().Set("Content-Type", "text/css")
			fmt.Sscan(r.URL.Path[1:], &status)
			fallthrough
		default:
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, body)
	}))
}

func start(t *testing.T, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", backend(t)) +
		headgatetest.Ingress("web", "a.test", "/", "a") + headgatetest.Ingress("profile", "b.test", "/", "a", "proxy-buffering: on") + config(keys...)})
}

// config has HTTP/3 as well, where NGINX does.
func config(keys ...string) string {
	return headgatetest.Config(append([]string{"use-http3: true"}, keys...)...)
}

// decoded is the body, which must be in the encoding that the header says.
func decoded(t *testing.T, r headgatetest.Response) string {
	t.Helper()
	var from io.Reader = strings.NewReader(r.Body)
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		g, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		from = g
	case "br":
		from = brotli.NewReader(from)
	}
	body, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

type asked struct {
	path, accept, agent, method string
	// encoding is empty for none.
	encoding string
}

func check(t *testing.T, g *headgatetest.Instance, cases ...asked) {
	t.Helper()
	for _, c := range cases {
		for _, by := range g.Protocols() {
			for _, host := range []string{"a.test", "b.test"} {
				by.Host, by.Path, by.Method = host, c.path, c.method
				by.Header = http.Header{"Accept-Encoding": {c.accept}, "User-Agent": {c.agent}}
				r := g.Do(by)
				if got := r.Header.Get("Content-Encoding"); got != c.encoding {
					t.Errorf("%+v of %s by %s: encoding %q", c, host, r.Proto, got)
					continue
				}
				if by.Method != http.MethodHead {
					r.Body = decoded(t, r)
				}
				if !strings.HasPrefix(text, r.Body) || (r.Body == "") != (by.Method == http.MethodHead) {
					t.Errorf("%+v of %s by %s: %d bytes %.40q", c, host, r.Proto, len(r.Body), r.Body)
				}
				want := map[bool]string{true: "W/" + tag, false: tag}[c.encoding != "" && c.path != "/encoded"]
				if etag := r.Header.Get("ETag"); etag != want {
					t.Errorf("%+v of %s by %s: ETag %s, want %s", c, host, r.Proto, etag, want)
				}
			}
		}
	}
}

func TestNothingByDefault(t *testing.T) {
	t.Parallel()
	g := start(t, "gzip-level: 9", "brotli-level: 9")
	check(t, g, asked{path: "/text/css", accept: "gzip, br"}, asked{path: "/encoded", accept: "gzip", encoding: "gzip"})
	if vary := g.Get("a.test", "/text/css").Header.Get("Vary"); vary != "" {
		t.Errorf("Vary: %s", vary)
	}
}

func TestNegotiation(t *testing.T) {
	t.Parallel()
	g := start(t, "use-gzip: true", "gzip-min-length: 1000", "gzip-disable: old|a\"b\\d")
	check(t, g,
		asked{path: "/text/css", accept: "gzip", encoding: "gzip"},
		asked{path: "/text/html", accept: "gzip", encoding: "gzip"},
		asked{path: "/application/json", accept: "deflate, gzip;q=0.5", encoding: "gzip"},
		asked{path: "/text/css", accept: "identity"},
		asked{path: "/text/css", accept: "gzip;q=0"},
		asked{path: "/text/css", accept: "br"},
		asked{path: "/image/png", accept: "gzip"},
		asked{path: "/text/css?999", accept: "gzip"},
		asked{path: "/text/css?1000", accept: "gzip", encoding: "gzip"},
		asked{path: "/chunked", accept: "gzip", encoding: "gzip"},
		asked{path: "/encoded", accept: "gzip", encoding: "gzip"},
		asked{path: "/404", accept: "gzip", encoding: "gzip"},
		asked{path: "/500", accept: "gzip"},
		asked{path: "/text/css", accept: "gzip", method: http.MethodHead, encoding: "gzip"},
		asked{path: "/text/css", accept: "gzip", method: http.MethodPost, encoding: "gzip"},
		asked{path: "/text/css", accept: "gzip", agent: "Very OLD"},
		asked{path: "/text/css", accept: "gzip", agent: `a"b7`},
		asked{path: "/text/css", accept: "gzip", agent: "new", encoding: "gzip"},
	)
	// Caches must know what the response depends on, also where it is not compressed.
	for _, accept := range []string{"gzip", "identity"} {
		r := g.Do(headgatetest.Request{Host: "a.test", Path: "/text/css", Header: http.Header{"Accept-Encoding": {accept}}})
		if vary := r.Header.Get("Vary"); vary != "Accept-Encoding" {
			t.Errorf("%s: Vary %q", accept, vary)
		}
	}
	// An old client's.
	for _, r := range g.Raw("GET /text/css HTTP/1.0\r\nHost: a.test\r\nAccept-Encoding: gzip\r\n\r\n") {
		if r.Header.Get("Content-Encoding") != "" {
			t.Error("HTTP/1.0 gets gzip")
		}
	}
	if g.Get("a.test", "/text/css").Header.Get("Accept-Ranges") != "" {
		t.Error("ranges of compressed responses are offered")
	}
}

func TestBoth(t *testing.T) {
	t.Parallel()
	g := start(t, "use-gzip: true", "enable-brotli: true", "brotli-min-length: 100", "brotli-types: text/css *")
	check(t, g,
		asked{path: "/text/css", accept: "gzip, br", encoding: "br"},
		asked{path: "/text/css", accept: "br", encoding: "br"},
		asked{path: "/text/css", accept: "gzip", encoding: "gzip"},
		asked{path: "/text/css", accept: "gzip, deflate, br, zstd", encoding: "br"},
		asked{path: "/text/css", accept: "identity"},
		asked{path: "/text/css?99", accept: "br"},
		asked{path: "/text/css?100", accept: "gzip, br", encoding: "br"},
		asked{path: "/image/png", accept: "gzip, br", encoding: "br"},
		asked{path: "/chunked", accept: "gzip, br", encoding: "br"},
		asked{path: "/encoded", accept: "gzip, br", encoding: "gzip"},
		asked{path: "/text/css", accept: "br", method: http.MethodHead, encoding: "br"},
	)
	g.ApplyReloading(config("enable-brotli: true"))
	check(t, g, asked{path: "/text/css", accept: "gzip, br", encoding: "br"}, asked{path: "/text/css", accept: "gzip"}, asked{path: "/image/png", accept: "br"})
	for _, accept := range []string{"br", "identity"} {
		r := g.Do(headgatetest.Request{Host: "a.test", Path: "/text/css", Header: http.Header{"Accept-Encoding": {accept}}})
		if vary := r.Header.Get("Vary"); vary != "Accept-Encoding" {
			t.Errorf("%s: Vary %q", accept, vary)
		}
	}
}

// Clients that people use ask for it by themselves, and decode it.
func TestClients(t *testing.T) {
	t.Parallel()
	g := start(t, "use-gzip: true", "enable-brotli: true")
	url := "http://" + headgatetest.Address(g.HTTP) + "/text/css"
	out, err := exec.Command("curl", "--silent", "--compressed", "--header", "Host: a.test", "--dump-header", "/dev/stderr", url).CombinedOutput()
	if err != nil || !strings.Contains(string(out), text) || !strings.Contains(string(out), "Content-Encoding: br") {
		t.Errorf("curl: %v, %d bytes %.400s", err, len(out), out)
	}
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "a.test"
	response, err := (&http.Client{Timeout: headgatetest.Timeout}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != text || !response.Uncompressed {
		t.Errorf("net/http: %v, %d bytes, uncompressed %v", err, len(body), response.Uncompressed)
	}
}

// Each level and the bounds of the types are such that NGINX takes them.
func TestNGINXTakesAll(t *testing.T) {
	t.Parallel()
	g := start(t)
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("application/vnd.of-a-long-name-of-a-type-%d", i+10000))
	}
	for _, keys := range [][]string{
		{"use-gzip: true", "gzip-types: " + strings.Join(many, " "), "gzip-level: 9", "gzip-min-length: 0", "gzip-disable: msie6"},
		{"enable-brotli: true", "brotli-types: " + strings.Join(many, " "), "brotli-level: 11", "brotli-min-length: 1073741824"},
		{"use-gzip: true", "gzip-types:", "enable-brotli: true", "brotli-types: text/html", "brotli-level: 0"},
	} {
		g.ApplyReloading(config(keys...))
		g.Get("a.test", "/text/css").WantStatus(t, 200)
	}
	if n := g.Value(g.Metrics.ReloadFailures); n != 0 {
		t.Errorf("%d reloads failed", n)
	}
}
