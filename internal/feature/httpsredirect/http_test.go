package httpsredirect_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const everySubdomain = "max-age=31536000; includeSubDomains"

// backend answers as the request's headers ask.
func backend(t *testing.T) string {
	t.Helper()
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if value := r.Header.Get("X-Hsts"); value != "" {
			w.Header()["Strict-Transport-Security"] = strings.Split(value, "|")
		}
		if status, err := strconv.Atoi(r.Header.Get("X-Status")); err == nil {
			w.WriteHeader(status)
		}
		fmt.Fprint(w, "backend")
	}))
	return headgatetest.Service("a") + headgatetest.Endpoints("a", address)
}

// secured is an Ingress with a certificate's Secret that need not be there.
func secured(name, host string, annotations ...string) string {
	return headgatetest.WithTLS(headgatetest.Ingress(name, host, "/", "a", annotations...), "tls "+host)
}

// check asks over http; want is "STATUS" or "STATUS LOCATION".
func check(t *testing.T, g *headgatetest.Instance, host, path, want string) {
	t.Helper()
	r := g.Do(headgatetest.Request{Host: host, Path: path})
	if got := strings.TrimSpace(fmt.Sprint(r.Status, " ", r.Header.Get("Location"))); got != want {
		t.Errorf("http://%s%s: got %s, want %s", host, path, got, want)
	}
	if h := r.Header.Get("Strict-Transport-Security"); h != "" {
		t.Errorf("http://%s%s: HSTS %q without TLS", host, path, h)
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	named := "proxy-body-size: 3m"
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) +
		headgatetest.TLSSecret("wild", headgatetest.NewKeyPair(t, "wild", "*.w.test")) +
		secured("with", "on.test") + secured("with2", "on2.test", named) + secured("without", "off.test", "ssl-redirect: false") +
		headgatetest.Ingress("plain", "plain.test", "/", "a") +
		headgatetest.Ingress("force", "force.test", "/", "a", "force-ssl-redirect: true", "ssl-redirect: false") +
		headgatetest.Ingress("noforce", "noforce.test", "/", "a", "force-ssl-redirect: false") +
		secured("keep", "keep.test", "preserve-trailing-slash: true") + secured("port", "port.test", "use-port-in-redirects: true") +
		headgatetest.WithTLS(headgatetest.Ingress("wild", "*.w.test", "/", "a"), "wild *.w.test") + headgatetest.Ingress("below", "x.w.test", "/", "a") +
		secured("solver", "acme.test") + headgatetest.Ingress("solver2", "acme.test", "/.well-known/acme-challenge/token", "a") +
		headgatetest.WithTLS(headgatetest.Ingress("typo", "typo.test", "/", "a"), "tls tpyo.test") +
		headgatetest.WithTLS(headgatetest.Ingress("unnamed", "unnamed.test", "/", "a"), "- unnamed.test") +
		secured("dead", "dead.test") + headgatetest.WithTLS(headgatetest.Ingress("slash", "slash.test", "/foo/", "a"), "tls slash.test")})
	port := strconv.Itoa(int(g.HTTPS))
	for _, c := range []struct{ host, path, want string }{
		{"on.test", "/", "308 https://on.test"},
		{"on.test", "/x", "308 https://on.test/x"},
		{"typo.test", "/x", "308 https://typo.test/x"},
		{"on.test", "/x/", "308 https://on.test/x"},
		{"on.test", "/x//", "308 https://on.test/x/"},
		{"on.test", "/x/?y=1", "308 https://on.test/x/?y=1"},
		{"on.test", "/x?y=/", "308 https://on.test/x?y="},
		{"on.test", "/a%2Fb%20c?d=%0d%0aX:1", "308 https://on.test/a%2Fb%20c?d=%0d%0aX:1"},
		{"on.test:8080", "/x", "308 https://on.test/x"},
		{"ON.test", "/x", "308 https://on.test/x"},
		{"on2.test", "/x", "308 https://on2.test/x"},
		{"off.test", "/", "200"},
		{"plain.test", "/", "200"},
		{"noforce.test", "/", "200"},
		{"force.test", "/x/?y=1", "308 https://force.test/x/?y=1"},
		{"keep.test", "/foo/", "308 https://keep.test/foo/"},
		{"keep.test", "/foo?x=/", "308 https://keep.test/foo?x=/"},
		{"keep.test", "/", "308 https://keep.test/"},
		{"port.test", "/x", "308 https://port.test:" + port + "/x"},
		{"port.test:8080", "/x", "308 https://port.test:" + port + "/x"},
		// The name asked for counts, as for SNI.
		{"n.w.test", "/x", "308 https://n.w.test/x"},
		{"x.w.test", "/", "308 https://x.w.test"},
		{"a.b.w.test", "/", "404"},
		{"unnamed.test", "/", "308 https://unnamed.test"},
		{"unknown.test", "/", "404"},
		{"slash.test", "/foo/x", "308 https://slash.test/foo/x"},
		// Certificates are got over http.
		{"acme.test", "/.well-known/acme-challenge/token", "200"},
		{"acme.test", "/.well-known/acme-challenge/other", "308 https://acme.test/.well-known/acme-challenge/other"},
		{"on.test", "/.well-known/acme-challenge/x", "308 https://on.test/.well-known/acme-challenge/x"},
		{"on.test", "/.well-known/other", "308 https://on.test/.well-known/other"},
		{"on.test", "/x?/.well-known/acme-challenge", "308 https://on.test/x?/.well-known/acme-challenge"},
		{"on.test", "/.well-known/acme-challenge/../../x", "308 https://on.test/.well-known/acme-challenge/../../x"},
	} {
		t.Run(c.host+c.path, func(t *testing.T) {
			t.Parallel()
			check(t, g, c.host, c.path, c.want)
		})
	}
	t.Run("what clients say of the scheme is not believed", func(t *testing.T) {
		t.Parallel()
		header := http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-Scheme": {"https"}, "X-Scheme": {"https"}}
		g.Do(headgatetest.Request{Host: "on.test", Header: header}).WantStatus(t, 308)
	})
	t.Run("POST", func(t *testing.T) {
		t.Parallel()
		g.Do(headgatetest.Request{Method: "POST", Host: "on.test", Body: strings.NewReader("x")}).WantStatus(t, 308)
	})
	t.Run("https is served", func(t *testing.T) {
		t.Parallel()
		for _, host := range []string{"on.test", "on2.test", "force.test", "keep.test", "n.w.test"} {
			g.Do(headgatetest.Request{Scheme: "https", Host: host}).WantStatus(t, 200)
		}
	})
}

func TestHSTS(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + secured("with", "on.test") +
		headgatetest.Ingress("plain", "plain.test", "/", "a", "ssl-redirect: false") +
		headgatetest.Ingress("named", "named.test", "/", "a", "proxy-body-size: 3m") +
		headgatetest.Ingress("moved", "moved.test", "/", "a", "permanent-redirect: https://a.test/") +
		headgatetest.Ingress("root", "root.test", "/", "a", "app-root: /app", "from-to-www-redirect: true") +
		headgatetest.Ingress("dead", "dead.test", "/", "none") + headgatetest.Ingress("slash", "slash.test", "/foo/", "a")})
	for _, c := range []struct {
		host, path string
		header     http.Header
		status     int
	}{
		{"on.test", "/", nil, 200}, {"plain.test", "/", nil, 200}, {"named.test", "/", nil, 200},
		{"on.test", "/", http.Header{"X-Status": {"500"}}, 500}, {"named.test", "/", http.Header{"X-Status": {"404"}}, 404},
		{"unknown.test", "/", nil, 404}, {"dead.test", "/", nil, 503}, {"slash.test", "/foo", nil, 301}, {"slash.test", "/x", nil, 404},
		{"on.test", "/..", nil, 400},
		{"moved.test", "/", nil, 301}, {"root.test", "/", nil, 302}, {"www.root.test", "/", nil, 308},
		// The backend's own is replaced.
		{"on.test", "/", http.Header{"X-Hsts": {"max-age=1"}}, 200}, {"named.test", "/", http.Header{"X-Hsts": {"max-age=1|max-age=2"}}, 200},
	} {
		for _, http2 := range []bool{false, true} {
			r := g.Do(headgatetest.Request{Scheme: "https", HTTP2: http2, Host: c.host, Path: c.path, Header: c.header}).WantStatus(t, c.status)
			if got := r.Header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != everySubdomain {
				t.Errorf("https://%s%s %v: HSTS %q", c.host, c.path, c.header, got)
			}
		}
	}
	// Over http a backend can't say it (RFC 6797, 7.2).
	r := g.Do(headgatetest.Request{Host: "plain.test", Header: http.Header{"X-Hsts": {"max-age=1"}}})
	if got := r.Header.Get("Strict-Transport-Security"); got != "" {
		t.Errorf("http: HSTS %q", got)
	}
}

// All keys of this feature act at once, and those of the redirect without a
// reload.
func TestConfigMapChangesLive(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + secured("with", "on.test") + headgatetest.Ingress("plain", "plain.test", "/", "a") +
		headgatetest.Ingress("noforce", "noforce.test", "/", "a", "force-ssl-redirect: false")})
	hsts := func(want string) {
		t.Helper()
		r := g.Do(headgatetest.Request{Scheme: "https", Host: "plain.test", Header: http.Header{"X-Hsts": {"max-age=5"}}})
		if got := r.Header.Get("Strict-Transport-Security"); got != want {
			t.Errorf("HSTS %q, want %q", got, want)
		}
	}
	for _, code := range []int{301, 302, 307} {
		g.Apply(headgatetest.Config(fmt.Sprint("http-redirect-code: ", code)))
		check(t, g, "on.test", "/x", fmt.Sprint(code, " https://on.test/x"))
	}
	g.Apply(headgatetest.Config("http-redirect-code: 418", "hsts: maybe"))
	check(t, g, "on.test", "/x", "308 https://on.test/x")
	hsts(everySubdomain)

	g.ApplyReloading(headgatetest.Config("hsts-max-age: 100", "hsts-include-subdomains: false", "hsts-preload: true"))
	hsts("max-age=100; preload")
	g.ApplyReloading(headgatetest.Config("hsts: false"))
	hsts("max-age=5")

	g.ApplyReloading(headgatetest.Ingress("open", "on.test", "/open", "a") + headgatetest.Ingress("healthz", "on.test", "/healthz", "a") +
		headgatetest.Config("no-tls-redirect-locations: /open, /health"))
	reloads := g.Value(g.Metrics.Reloads)
	check(t, g, "on.test", "/open/x", "200")
	check(t, g, "on.test", "/healthz", "200")
	check(t, g, "on.test", "/health", "308 https://on.test/health")
	check(t, g, "on.test", "/.well-known/acme-challenge", "308 https://on.test/.well-known/acme-challenge")
	g.Apply(headgatetest.Config("no-tls-redirect-locations: "))
	check(t, g, "on.test", "/open", "308 https://on.test/open")

	g.Apply(headgatetest.Config("force-ssl-redirect: true", "preserve-trailing-slash: true", "use-port-in-redirects: true"))
	check(t, g, "plain.test", "/x/", fmt.Sprintf("308 https://plain.test:%d/x/", g.HTTPS))
	check(t, g, "noforce.test", "/x/", "200")
	check(t, g, "unknown.test", "/x", "404")
	g.Apply(headgatetest.Config("ssl-redirect: false"))
	check(t, g, "on.test", "/", "200")
	g.Delete(headgatetest.Config())
	check(t, g, "on.test", "/", "308 https://on.test")
	check(t, g, "plain.test", "/", "200")
	if n := g.Value(g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}
