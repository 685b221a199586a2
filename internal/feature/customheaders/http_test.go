package customheaders_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/gatetest"
	"github.com/headgate/headgate/internal/porttest"
)

const allowed = "global-allowed-response-headers: X-Custom,X_Under,Cache-Control,Strict-Transport-Security"

// backend answers with the status that is asked for, and headers of its own.
func backend(t *testing.T) string {
	t.Helper()
	address := gatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Custom"] = []string{"backend", "again"}
		w.Header().Set("Cache-Control", "max-age=5")
		if status, err := strconv.Atoi(r.Header.Get("X-Status")); err == nil {
			w.WriteHeader(status)
		}
		fmt.Fprint(w, "backend")
	}))
	return gatetest.Service("web") + gatetest.Endpoints("web", address) + gatetest.Endpoints("none") +
		gatetest.Service("dead") + gatetest.Endpoints("dead", gatetest.Address(porttest.Free(t)))
}

// ask asks over HTTP/1.1 or, with TLS, over HTTP/2.
func ask(g *gatetest.Gate, http2 bool, host, path, status string) gatetest.Response {
	r := gatetest.Request{Host: host, Path: path, HTTP2: http2, Header: http.Header{"X-Status": {status}}}
	if http2 {
		r.Scheme = "https"
	}
	return g.Do(r)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	const on = "custom-headers: default/headers"
	g := gatetest.Start(t, gatetest.Options{Manifests: backend(t) + gatetest.Config(allowed) +
		gatetest.ConfigMap("headers", "X-Custom: a $host \\ \"b\"", "Cache-Control: no-store", "X_Under: u") +
		gatetest.ConfigMap("other/shared", "X-Custom: shared") + gatetest.ConfigMap("evil", "X-Custom: a\r\nX-Evil: 1") +
		gatetest.Ingress("one", "a.test", "/one", "web", on) + gatetest.Ingress("two", "a.test", "/two", "web") +
		gatetest.Ingress("dead", "a.test", "/dead", "dead", on) + gatetest.Ingress("none", "a.test", "/none", "none", on) +
		gatetest.Ingress("moved", "a.test", "/moved", "web", on, "permanent-redirect: https://b.test/") +
		gatetest.Ingress("shared", "a.test", "/shared", "web", "custom-headers: other/shared") +
		gatetest.Ingress("evil", "a.test", "/evil", "web", "custom-headers: default/evil") +
		gatetest.Ingress("bare", "a.test", "/bare", "web", "custom-headers: headers") +
		gatetest.Ingress("bad", "a.test", "/bad", "web", "custom-headers: default/no name") +
		gatetest.Ingress("deep", "a.test", "/deep", "web", "custom-headers: a/b/c") +
		gatetest.Ingress("lacking", "a.test", "/lacking", "web", "custom-headers: default/lacking")})
	mine, others := "a $host \\ \"b\"|no-store|u", "backend|again|max-age=5|"
	for _, c := range []struct {
		path, asked string
		status      int
		want        string
	}{
		{"/one", "", 200, mine}, {"/one", "404", 404, mine}, {"/one", "500", 500, mine}, {"/one", "204", 204, mine},
		{"/dead", "", 502, mine}, {"/none", "", 503, mine}, {"/moved", "", 301, mine},
		{"/two", "", 200, others}, {"/shared", "", 200, "shared|max-age=5|"},
		{"/evil", "", 503, "||"}, {"/bare", "", 503, "||"}, {"/lacking", "", 503, "||"},
		{"/bad", "", 200, others}, {"/deep", "", 200, others},
	} {
		for _, http2 := range []bool{false, true} {
			r := ask(g, http2, "a.test", c.path, c.asked).WantStatus(t, c.status)
			got := strings.Join(r.Header.Values("X-Custom"), "|") + "|" + strings.Join(r.Header.Values("Cache-Control"), "|") + "|" +
				strings.Join(r.Header.Values(http.CanonicalHeaderKey("X_Under")), "|")
			if got != c.want || r.Header.Get("X-Evil") != "" {
				t.Errorf("%s %s (HTTP/2 %v): %v, want %s", c.path, c.asked, http2, r.Header, c.want)
			}
		}
	}
}

// The administrator's Strict-Transport-Security stands.
func TestHSTS(t *testing.T) {
	t.Parallel()
	g := gatetest.Start(t, gatetest.Options{Manifests: backend(t) + gatetest.Config(allowed) +
		gatetest.ConfigMap("headers", "Strict-Transport-Security: max-age=1") +
		gatetest.Ingress("one", "a.test", "/", "web", "custom-headers: default/headers")})
	check := func(http2 bool, want ...string) {
		t.Helper()
		r := ask(g, http2, "a.test", "/", "").WantStatus(t, 200)
		if got := r.Header.Values("Strict-Transport-Security"); !slices.Equal(got, want) {
			t.Errorf("HTTP/2 %v: %q, want %q", http2, got, want)
		}
	}
	check(true, "max-age=31536000; includeSubDomains")
	check(false)
	g.ApplyReloading(gatetest.Config(allowed, "hsts: false"))
	check(true, "max-age=1")
}

// ConfigMap and key act at once, on their own routes, without a reload.
func TestChange(t *testing.T) {
	t.Parallel()
	headers := gatetest.ConfigMap("headers", "X-Custom: one")
	g := gatetest.Start(t, gatetest.Options{Manifests: backend(t) + gatetest.Config(allowed) + headers +
		gatetest.Ingress("one", "a.test", "/one", "web", "custom-headers: default/headers") + gatetest.Ingress("two", "a.test", "/two", "web")})
	check := func(status int, want string) {
		t.Helper()
		r := g.Get("a.test", "/one").WantStatus(t, status)
		if got := strings.Join(r.Header.Values("X-Custom"), "|"); got != want {
			t.Errorf("X-Custom %q, want %q", got, want)
		}
		g.Get("a.test", "/two").WantStatus(t, 200)
	}
	check(200, "one")
	g.Apply(gatetest.ConfigMap("headers", "X-Custom: two"))
	check(200, "two")
	g.Delete(headers)
	check(503, "")
	g.Apply(headers)
	check(200, "one")
	g.Apply(gatetest.Config("global-allowed-response-headers: x-custom"))
	check(503, "")
	g.Delete(gatetest.Config())
	check(503, "")
	g.Apply(gatetest.Config(allowed))
	check(200, "one")
	g.Apply(gatetest.Ingress("one", "a.test", "/one", "web"))
	check(200, "backend|again")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}
