package customheaders_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

const allowed = "global-allowed-response-headers: X-Custom,X_Under,Cache-Control,Strict-Transport-Security"

// backend answers with the status that is asked for, and headers of its own.
func backend(t *testing.T) string {
	t.Helper()
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Custom"] = []string{"backend", "again"}
		w.Header().Set("Cache-Control", "max-age=5")
		if status, err := strconv.Atoi(r.Header.Get("X-Status")); err == nil {
			w.WriteHeader(status)
		}
		fmt.Fprint(w, "backend")
	}))
	return headgatetest.Service("web") + headgatetest.Endpoints("web", address) + headgatetest.Endpoints("none") +
		headgatetest.Service("dead") + headgatetest.Endpoints("dead", headgatetest.Address(porttest.Free(t)))
}

// ask asks over HTTP/1.1 or, with TLS, over HTTP/2.
func ask(g *headgatetest.Instance, http2 bool, host, path, status string) headgatetest.Response {
	r := headgatetest.Request{Host: host, Path: path, HTTP2: http2, Header: http.Header{"X-Status": {status}}}
	if http2 {
		r.Scheme = "https"
	}
	return g.Do(r)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	const on = "custom-headers: default/headers"
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Config(allowed) +
		headgatetest.ConfigMap("headers", "X-Custom: a $host \\ \"b\"", "Cache-Control: no-store", "X_Under: u") +
		headgatetest.ConfigMap("other/shared", "X-Custom: shared") + headgatetest.ConfigMap("evil", "X-Custom: a\r\nX-Evil: 1") +
		headgatetest.Ingress("one", "a.test", "/one", "web", on) + headgatetest.Ingress("two", "a.test", "/two", "web") +
		headgatetest.Ingress("dead", "a.test", "/dead", "dead", on) + headgatetest.Ingress("none", "a.test", "/none", "none", on) +
		headgatetest.Ingress("moved", "a.test", "/moved", "web", on, "permanent-redirect: https://b.test/") +
		headgatetest.Ingress("shared", "a.test", "/shared", "web", "custom-headers: other/shared") +
		headgatetest.Ingress("evil", "a.test", "/evil", "web", "custom-headers: default/evil") +
		headgatetest.Ingress("bare", "a.test", "/bare", "web", "custom-headers: headers") +
		headgatetest.Ingress("bad", "a.test", "/bad", "web", "custom-headers: default/no name") +
		headgatetest.Ingress("deep", "a.test", "/deep", "web", "custom-headers: a/b/c") +
		headgatetest.Ingress("lacking", "a.test", "/lacking", "web", "custom-headers: default/lacking")})
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
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Config(allowed) +
		headgatetest.ConfigMap("headers", "Strict-Transport-Security: max-age=1") +
		headgatetest.Ingress("one", "a.test", "/", "web", "custom-headers: default/headers")})
	check := func(http2 bool, want ...string) {
		t.Helper()
		r := ask(g, http2, "a.test", "/", "").WantStatus(t, 200)
		if got := r.Header.Values("Strict-Transport-Security"); !slices.Equal(got, want) {
			t.Errorf("HTTP/2 %v: %q, want %q", http2, got, want)
		}
	}
	check(true, "max-age=31536000; includeSubDomains")
	check(false)
	g.ApplyReloading(headgatetest.Config(allowed, "hsts: false"))
	check(true, "max-age=1")
}

// ConfigMap and key act at once, on their own routes, without a reload.
func TestChange(t *testing.T) {
	t.Parallel()
	headers := headgatetest.ConfigMap("headers", "X-Custom: one")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Config(allowed) + headers +
		headgatetest.Ingress("one", "a.test", "/one", "web", "custom-headers: default/headers") + headgatetest.Ingress("two", "a.test", "/two", "web")})
	check := func(status int, want string) {
		t.Helper()
		r := g.Get("a.test", "/one").WantStatus(t, status)
		if got := strings.Join(r.Header.Values("X-Custom"), "|"); got != want {
			t.Errorf("X-Custom %q, want %q", got, want)
		}
		g.Get("a.test", "/two").WantStatus(t, 200)
	}
	check(200, "one")
	g.Apply(headgatetest.ConfigMap("headers", "X-Custom: two"))
	check(200, "two")
	g.Delete(headers)
	check(503, "")
	g.Apply(headers)
	check(200, "one")
	g.Apply(headgatetest.Config("global-allowed-response-headers: x-custom"))
	check(503, "")
	g.Delete(headgatetest.Config())
	check(503, "")
	g.Apply(headgatetest.Config(allowed))
	check(200, "one")
	g.Apply(headgatetest.Ingress("one", "a.test", "/one", "web"))
	check(200, "backend|again")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}
