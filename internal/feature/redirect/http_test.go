package redirect_test

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A step is a request and where it is sent: a status alone for nowhere.
type step struct {
	host, path string
	status     int
	location   string
}

func check(t *testing.T, g *headgatetest.Instance, steps []step) {
	t.Helper()
	for _, s := range steps {
		for _, scheme := range []string{"http", "https"} {
			r := g.Do(headgatetest.Request{Scheme: scheme, HTTP2: scheme == "https", Host: s.host, Path: s.path})
			want := s.location
			if scheme == "https" && len(want) > 5 && want[:5] == "http:" {
				want = "https" + want[4:]
			}
			if got := r.Header.Get("Location"); r.Status != s.status || got != want {
				t.Errorf("%s://%s%s: %d %q, want %d %q", scheme, s.host, s.path, r.Status, got, s.status, want)
			}
		}
	}
}

func backend(t *testing.T, name string) string {
	t.Helper()
	return headgatetest.Service(name) + headgatetest.Endpoints(name, headgatetest.StartEcho(t, name))
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "web") + headgatetest.Service("down") + headgatetest.Endpoints("down") +
		headgatetest.Ingress("p", "permanent.test", "/", "web", "permanent-redirect: https://example.com/there?a=b") +
		headgatetest.Ingress("path", "path.test", "/", "web", "permanent-redirect: /elsewhere", "permanent-redirect-code: 308") +
		headgatetest.Ingress("rel", "relative.test", "/", "web", "permanent-redirect: /elsewhere", "relative-redirects: true") +
		headgatetest.Ingress("bare", "bare.test", "/", "web", "permanent-redirect: example.com/x") +
		headgatetest.Ingress("t", "temporal.test", "/", "down", "temporal-redirect: https://example.com/t", "permanent-redirect: /no") +
		headgatetest.Ingress("temprel", "temprel.test", "/", "web", "temporal-redirect: /location", "relative-redirects: true") +
		headgatetest.Ingress("rootrel", "rootrel.test", "/", "web", "app-root: /home", "relative-redirects: true") +
		headgatetest.Ingress("not", "not.test", "/", "web", "temporal-redirect: /path") +
		headgatetest.Ingress("denied", "denied.test", "/", "web", "permanent-redirect: /{x}") +
		headgatetest.Ingress("slash", "slash.test", "/foo/", "web") +
		headgatetest.Ingress("slashrel", "slashrel.test", "/foo/", "web", "relative-redirects: true"),
	})
	check(t, g, []step{
		{"permanent.test", "/", 301, "https://example.com/there?a=b"},
		{"permanent.test", "/foo?x=1", 301, "https://example.com/there?a=b"},
		{"path.test", "/x", 308, "http://path.test/elsewhere"},
		{"relative.test", "/x", 301, "/elsewhere"},
		{"bare.test", "/x", 301, "example.com/x"},
		{"temporal.test", "/x", 302, "https://example.com/t"},
		{"not.test", "/x", 200, ""},
		{"temprel.test", "/x", 302, "/location"},
		{"rootrel.test", "/", 302, "/home"},
		{"denied.test", "/x", 503, ""},
		{"slash.test", "/foo?x=1", 301, "http://slash.test/foo/?x=1"},
		{"slashrel.test", "/foo?x=1", 301, "/foo/?x=1"},
	})
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

func TestAppRoot(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "web") +
		headgatetest.Ingress("a", "root.test", "/", "web", "app-root: /app", "permanent-redirect: /never") +
		headgatetest.Ingress("deep", "deep.test", "/foo", "web") +
		headgatetest.Ingress("deep2", "deep.test", "/bar", "web", "app-root: /bar/$host") +
		headgatetest.Ingress("query", "query.test", "/", "web", "app-root: /foo$is_args$args") +
		headgatetest.Ingress("z-host", "lost.test", "/", "web") + headgatetest.Ingress("b-host", "lost.test", "/", "web", "app-root: /lost") +
		headgatetest.Ingress("z-kept", "kept.test", "/", "web", "app-root: /kept") + headgatetest.Ingress("b-kept", "kept.test", "/", "web") +
		headgatetest.Ingress("regex", "regex.test", "/foo/(.*)", "web", "rewrite-target: /$1", "app-root: /foo/start"),
	})
	check(t, g, []step{
		{"root.test", "/", 302, "http://root.test/app"},
		{"root.test", "/?x=1", 302, "http://root.test/app"},
		{"root.test", "//", 302, "http://root.test/app"},
		{"query.test", "/", 302, "http://query.test/foo"},
		{"query.test", "/?x=1", 302, "http://query.test/foo?x=1"},
		{"query.test", "/?x=%20y&z=/", 302, "http://query.test/foo?x=%20y&z=/"},
		// Of all its paths the Ingress with app-root has none.
		{"lost.test", "/", 200, ""},
		{"kept.test", "/", 302, "http://kept.test/kept"},
		{"root.test", "/x", 301, "http://root.test/never"},
		{"deep.test", "/", 302, "http://deep.test/bar/deep.test"},
		{"deep.test", "/foo", 200, ""},
		{"regex.test", "/", 302, "http://regex.test/foo/start"},
		{"regex.test", "/foo/x", 200, ""},
	})
	r := g.Do(headgatetest.Request{Host: "root.test:8080", Header: http.Header{}})
	if got := r.Header.Get("Location"); got != "http://root.test:8080/app" {
		t.Errorf("with a port: %q", got)
	}
}

func TestWWWRedirectAliases(t *testing.T) {
	t.Parallel()
	both := headgatetest.NewKeyPair(t, "tls.test", "tls.test", "www.tls.test")
	one := headgatetest.NewKeyPair(t, "one.test", "one.test")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "web") + backend(t, "own") +
		headgatetest.Ingress("bare", "bare.test", "/", "web", "from-to-www-redirect: true") +
		headgatetest.Ingress("www", "www.long.test", "/", "web", "from-to-www-redirect: true") +
		headgatetest.Ingress("taken", "taken.test", "/", "web", "from-to-www-redirect: true") +
		headgatetest.Ingress("owner", "www.taken.test", "/", "own") +
		headgatetest.Ingress("alias", "other.test", "/", "own", "server-alias: www.alias.test") +
		headgatetest.Ingress("aliased", "alias.test", "/", "web", "from-to-www-redirect: true") +
		headgatetest.Ingress("off", "off.test", "/", "web", "from-to-www-redirect: false") +
		headgatetest.Ingress("star", "*.star.test", "/", "web", "from-to-www-redirect: true"),
	})
	check(t, g, []step{
		{"www.bare.test", "/x/y?z=1", 308, "http://bare.test/x/y?z=1"},
		{"www.bare.test", "/", 308, "http://bare.test/"},
		{"bare.test", "/x", 200, ""},
		{"long.test", "/x?y", 308, "http://www.long.test/x?y"},
		{"www.taken.test", "/", 200, ""},
		{"www.alias.test", "/", 200, ""},
		{"www.off.test", "/", 404, ""},
		{"www.star.test", "/", 200, ""},
		{"star.test", "/", 404, ""},
	})
	redirected := "from-to-www-redirect: true"
	g.Apply(headgatetest.TLSSecret("both", both) + headgatetest.TLSSecret("one", one) +
		headgatetest.WithTLS(headgatetest.Ingress("tls", "tls.test", "/", "web", redirected), "both tls.test") +
		headgatetest.WithTLS(headgatetest.Ingress("one", "one.test", "/", "web", redirected), "one one.test"))
	for name, sees := range map[string]bool{"www.tls.test": true, "www.one.test": false} {
		r := g.Do(headgatetest.Request{Scheme: "https", Host: name, Path: "/x"}).WantStatus(t, 308)
		if got := r.TLS.PeerCertificates[0].VerifyHostname(name) == nil; got != sees {
			t.Errorf("%s: its certificate is shown: %v", name, got)
		}
	}
	g.Apply(headgatetest.Ingress("late", "www.bare.test", "/", "own"))
	check(t, g, []step{{"www.bare.test", "/x", 200, ""}})
	g.Delete(headgatetest.Ingress("late", "www.bare.test", "/", "own") + headgatetest.Ingress("bare", "bare.test", "/", "web"))
	check(t, g, []step{{"www.bare.test", "/x", 404, ""}})
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

// The redirect of an Ingress without rules is for all requests that match none.
func TestRedirectOfTheDefaultBackend(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "web") + headgatetest.Ingress("web", "web.test", "/", "web") + `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: rest
  annotations: {nginx.ingress.kubernetes.io/permanent-redirect: "https://home.example.test/"}
spec:
  defaultBackend: {service: {name: web, port: {number: 80}}}
`})
	check(t, g, []step{{"web.test", "/", 200, ""}, {"other.test", "/x", 301, "https://home.example.test/"}})
}
