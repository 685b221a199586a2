package dataplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// The scenarios of kubernetes-sigs/ingress-controller-conformance, but for the
// addresses in the status of Ingresses, which test/e2e has. Each of its sets of objects is served
// alone, as there.

// echoed are Services with an echo of their own.
func echoed(t *testing.T, names ...string) string {
	t.Helper()
	var manifests strings.Builder
	for _, name := range names {
		manifests.WriteString(served(name, headgatetest.StartEcho(t, name)))
	}
	return manifests.String()
}

// wantBackend asks and expects a Service's answer, or 404 if that is empty.
func wantBackend(t *testing.T, g *headgatetest.Instance, r headgatetest.Request, backend string) headgatetest.Response {
	t.Helper()
	response := g.Do(r)
	switch {
	case backend == "":
		response.WantStatus(t, http.StatusNotFound)
	case response.Status != http.StatusOK || response.Echo == nil || response.Echo.Backend != backend:
		t.Errorf("%s%s: %d %s, want an answer of %s", r.Host, r.Path, response.Status, response.Body, backend)
	}
	return response
}

const catchAll = "---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: catch-all}\n" +
	"spec: {defaultBackend: {service: {name: catch-all, port: {number: 80}}}}\n"

func TestConformanceDefaultBackend(t *testing.T) {
	t.Parallel()
	// The suite wants a Server header, which ingress-nginx leaves out by default too.
	g := headgatetest.Start(t, headgatetest.Options{Manifests: echoed(t, "catch-all") + catchAll + headgatetest.Config("server-tokens: true")})
	for _, c := range []struct{ method, host, path string }{
		{"GET", "my-host", "/"},
		{"GET", "my-host", "/sub-path"},
		{"POST", "some-host", "/"},
		{"PUT", "127.0.0.1", "/resource"}, // the controller's address
		{"DELETE", "some-host", "/resource"},
		{"PATCH", "my-host", "/resource"},
	} {
		t.Run(c.method+" "+c.host+c.path, func(t *testing.T) {
			r := wantBackend(t, g, headgatetest.Request{
				Method: c.method, Host: c.host, Path: c.path, Header: http.Header{"User-Agent": {"conformance/1"}},
			}, "catch-all")
			if r.Echo == nil {
				return
			}
			if r.Echo.Method != c.method || r.Echo.Target != c.path || r.Echo.Header.Get("User-Agent") != "conformance/1" {
				t.Errorf("the backend saw %+v", *r.Echo)
			}
			for _, name := range []string{"Content-Length", "Content-Type", "Date", "Server"} {
				if r.Header.Get(name) == "" {
					t.Errorf("no %s in the answer", name)
				}
			}
			if r.Proto != "HTTP/1.1" {
				t.Errorf("the answer is %s", r.Proto)
			}
		})
	}
}

func TestConformanceHostRules(t *testing.T) {
	t.Parallel()
	pair := headgatetest.NewKeyPair(t, "conformance", "foo.bar.com")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: echoed(t, "wildcard-foo-com", "foo-bar-com") +
		headgatetest.WithTLS(ruled("hosts", "*.foo.com Prefix / wildcard-foo-com http", "foo.bar.com Prefix / foo-bar-com http", "", "ssl-redirect: false"), "tls foo.bar.com") +
		headgatetest.TLSSecret("tls", pair)})
	r := wantBackend(t, g, headgatetest.Request{Scheme: "https", Host: "foo.bar.com", Path: "/"}, "foo-bar-com")
	if r.TLS == nil || r.TLS.PeerCertificates[0].Subject.CommonName != "conformance" {
		t.Error("https://foo.bar.com does not show its certificate")
	}
	wantBackend(t, g, headgatetest.Request{Host: "foo.bar.com", Path: "/"}, "foo-bar-com")
	wantBackend(t, g, headgatetest.Request{Host: "bar.foo.com", Path: "/"}, "wildcard-foo-com")
	for _, host := range []string{"subdomain.bar.com", "baz.bar.foo.com", "foo.com"} {
		wantBackend(t, g, headgatetest.Request{Host: host, Path: "/"}, "")
	}
}

func TestConformanceClass(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: echoed(t, "foo") +
		strings.Replace(headgatetest.Ingress("foreign", "foreign.com", "/", "foo"), "spec:\n", "spec:\n  ingressClassName: some-invalid-class-name\n", 1)})
	wantBackend(t, g, headgatetest.Request{Host: "foreign.com", Path: "/"}, "")
}

func TestConformanceLoadBalancing(t *testing.T) {
	t.Parallel()
	var pods []string
	for i := range 10 {
		pods = append(pods, headgatetest.StartEcho(t, fmt.Sprint(i)))
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("catch-all", pods...) + catchAll})
	seen := map[string]bool{}
	for range 100 {
		r := g.Get("any.host", "/")
		if r.Status != http.StatusOK || r.Echo == nil {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		seen[r.Echo.Backend] = true
	}
	if len(seen) != len(pods) {
		t.Errorf("%d of %d pods answered", len(seen), len(pods))
	}
}

func TestConformancePaths(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: echoed(t, "foo-exact", "foo-prefix", "aaa-bbb-prefix", "aaa-prefix", "aaa-slash-bbb-slash-prefix", "foo-slash-exact") +
		ruled("exact", "exact-path-rules Exact /foo foo-exact") +
		ruled("prefix", "prefix-path-rules Prefix /foo foo-prefix", "prefix-path-rules Prefix /aaa/bbb aaa-bbb-prefix", "prefix-path-rules Prefix /aaa aaa-prefix") +
		ruled("mixed", "mixed-path-rules Prefix /foo foo-prefix", "mixed-path-rules Exact /foo foo-exact") +
		ruled("slash", "trailing-slash-path-rules Prefix /aaa/bbb/ aaa-slash-bbb-slash-prefix", "trailing-slash-path-rules Exact /foo/ foo-slash-exact")})
	for _, c := range []struct{ host, path, backend string }{
		{"exact-path-rules", "/foo", "foo-exact"},
		{"exact-path-rules", "/foo/", ""},
		{"exact-path-rules", "/FOO", ""},
		{"exact-path-rules", "/bar", ""},
		{"prefix-path-rules", "/foo", "foo-prefix"},
		{"prefix-path-rules", "/foo/", "foo-prefix"},
		{"prefix-path-rules", "/aaa/bbb", "aaa-bbb-prefix"},
		{"prefix-path-rules", "/aaa/bbb/ccc", "aaa-bbb-prefix"},
		{"prefix-path-rules", "/aaa/ccc", "aaa-prefix"},
		{"prefix-path-rules", "/FOO", ""},
		{"prefix-path-rules", "/aaaccc", ""},
		{"mixed-path-rules", "/foo", "foo-exact"},
		{"trailing-slash-path-rules", "/aaa/bbb/", "aaa-slash-bbb-slash-prefix"},
	} {
		wantBackend(t, g, headgatetest.Request{Host: c.host, Path: c.path}, c.backend)
	}
	// Where the suite wants 200 at once, or 404, ingress-nginx redirects.
	for _, path := range []string{"/aaa/bbb", "/foo"} {
		r := g.Get("trailing-slash-path-rules", path).WantStatus(t, http.StatusMovedPermanently)
		if got, want := r.Header.Get("Location"), "http://trailing-slash-path-rules"+path+"/"; got != want {
			t.Errorf("%s: a redirect to %s, want %s", path, got, want)
		}
	}
}
