package dataplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Headgate itself answers for names without a host, and not for names with one.
func TestOwnPages(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", startWire(t, "X-Wire: a\r\n").address) +
		ruled("mine", "mine.test Prefix / a", "*.w.test Prefix / a") + ruled("hostless", " Prefix / a")})
	for _, host := range []string{"unknown.test", "127.0.0.1", "_"} {
		r := g.Get(host, "/healthz").WantStatus(t, http.StatusOK)
		if r.Body != "" || r.Header.Get("Content-Type") != "text/html" {
			t.Errorf("%s: /healthz answers %q of type %s", host, r.Body, r.Header.Get("Content-Type"))
		}
		status := g.Get(host, "/nginx_status").WantStatus(t, http.StatusOK).Body
		if !strings.HasPrefix(status, "Active connections: ") {
			t.Errorf("%s: /nginx_status answers %q", host, status)
		}
		for _, path := range []string{"/healthz/", "/healthzx", "/HEALTHZ", "/nginx_status/"} {
			checkPath(t, g, host, path+" a")
		}
	}
	for _, host := range []string{"mine.test", "x.w.test"} {
		checkPath(t, g, host, "/healthz a")
		checkPath(t, g, host, "/nginx_status a")
	}
}

// While a route's own backend has no endpoint, the one of default-backend is
// asked, with headers that say so. It is asked for what the client asked for.
func TestFallback(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("page", startWire(t, "X-Wire: page\r\n").address) +
		headgatetest.Service("empty") + headgatetest.Service("silent") +
		headgatetest.Ingress("shop", "shop.test", "/", "empty", "default-backend: page") +
		headgatetest.Ingress("missing", "missing.test", "/", "missing", "default-backend: page") +
		headgatetest.Ingress("none", "none.test", "/", "empty", "default-backend: silent")})
	header := sentHeader(askRaw(t, g, "GET /p?x=1 HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\nAccept: text/html\r\nX-Code: 200\r\nX-Namespace: spoofed\r\n\r\n").Body)
	got := map[string]string{}
	for _, name := range []string{"X-Code", "X-Format", "X-Namespace", "X-Ingress-Name", "X-Service-Name", "X-Service-Port", "Host"} {
		got[name] = strings.Join(header.Values(name), "|")
	}
	want := map[string]string{
		"X-Code": "503", "X-Format": "text/html", "X-Namespace": "default", "X-Ingress-Name": "shop",
		"X-Service-Name": "empty", "X-Service-Port": "80", "Host": "shop.test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the fallback backend gets (-want +got):\n%s", diff)
	}
	checkPath(t, g, "shop.test", "/p?x=1 page")
	checkPath(t, g, "missing.test", "/ page")
	checkPath(t, g, "none.test", "/ 503")

	// An endpoint ends it, without a reload.
	g.Apply(headgatetest.Endpoints("empty", startWire(t, "X-Wire: own\r\n").address))
	checkPath(t, g, "shop.test", "/ own")
	if header := sentHeader(askRaw(t, g, "GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\nX-Code: 200\r\n\r\n").Body); header.Get("X-Code") != "200" {
		t.Errorf("a client's X-Code reaches the Service as %q", header.Get("X-Code"))
	}
}

// The administrator's default backend answers what no rule does. Without an
// endpoint it is as if there were none.
// A key that guards all paths guards those of names without a host.
func TestDefaultBackendIsGuarded(t *testing.T) {
	t.Parallel()
	page := served("page", startWire(t, "X-Wire: page\r\n").address)
	g := headgatetest.Start(t, headgatetest.Options{DefaultBackend: "page", Manifests: page + headgatetest.Config("block-cidrs: nonsense")})
	g.Get("unknown.test", "/").WantStatus(t, http.StatusServiceUnavailable)
	g.Get("unknown.test", "/healthz").WantStatus(t, http.StatusOK)
	g.Apply(headgatetest.Config())
	checkPath(t, g, "unknown.test", "/ page")
}

func TestDefaultBackend(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{DefaultBackend: "page", Manifests: served("page", startWire(t, "X-Wire: page\r\n").address) +
		served("a", startWire(t, "X-Wire: a\r\n").address) + headgatetest.Service("empty") + ruled("mine", "mine.test Prefix /a a", "mine.test Prefix /empty empty")})
	checkPath(t, g, "mine.test", "/a a")
	checkPath(t, g, "mine.test", "/b page")
	checkPath(t, g, "unknown.test", "/x?y=1 page")
	checkPath(t, g, "mine.test", "/empty 503")
	g.Get("unknown.test", "/healthz").WantStatus(t, http.StatusOK)
	g.Delete(headgatetest.Service("page"))
	checkPath(t, g, "mine.test", "/b 404")
	checkPath(t, g, "unknown.test", "/ 404")
	g.Apply(headgatetest.Service("page"))
	checkPath(t, g, "unknown.test", "/ page")
}
