package globalheaders_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// backend answers with headers of its own.
func backend(t *testing.T) string {
	t.Helper()
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Frame-Options"] = []string{"backend", "again"}
		w.Header().Set("X-Powered-By", "backend")
		w.Header().Set("Server", "backend")
	}))
	return headgatetest.Service("web") + headgatetest.Endpoints("web", address) + headgatetest.Service("none") + headgatetest.Endpoints("none") +
		headgatetest.Service("dead") + headgatetest.Endpoints("dead", headgatetest.Address(porttest.Free(t)))
}

func TestResponses(t *testing.T) {
	t.Parallel()
	config := []string{"add-headers: default/all", "use-http3: true", "block-user-agents: bad", "global-allowed-response-headers: X-Frame-Options,Strict-Transport-Security"}
	all := headgatetest.ConfigMap("all", "X-Frame-Options: DENY", "X-Powered-By: ", "X-Where: $namespace/$ingress_name $host", "Strict-Transport-Security: max-age=1")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Config(config...) + all +
		headgatetest.ConfigMap("own", "X-Frame-Options: SAMEORIGIN") +
		headgatetest.Ingress("web", "a.test", "/", "web", "from-to-www-redirect: true") + headgatetest.Ingress("slash", "a.test", "/slash/", "web") +
		headgatetest.Ingress("none", "a.test", "/none", "none") + headgatetest.Ingress("dead", "a.test", "/dead", "dead") +
		headgatetest.Ingress("moved", "a.test", "/moved", "web", "permanent-redirect: https://b.test/") +
		headgatetest.Ingress("own", "a.test", "/own", "web", "custom-headers: default/own") +
		headgatetest.Ingress("ownmoved", "a.test", "/own-moved", "web", "custom-headers: default/own", "permanent-redirect: https://b.test/") +
		headgatetest.Ingress("buffered", "a.test", "/profile", "web", "proxy-buffering: on")})
	agent := http.Header{"User-Agent": {"bad"}}
	const usual, hsts = "max-age=31536000; includeSubDomains", "max-age=1"
	check := func(strict string) {
		t.Helper()
		for _, c := range []struct {
			host, path string
			header     http.Header
			status     int
			frame      string
			where      string
		}{
			{"a.test", "/", nil, 200, "DENY", "default/web a.test"}, {"a.test", "/profile", nil, 200, "DENY", "default/buffered a.test"},
			{"a.test", "/slash", nil, 301, "DENY", "/ a.test"}, {"www.a.test", "/", nil, 308, "DENY", "/ www.a.test"},
			{"a.test", "/none", nil, 503, "DENY", "default/none a.test"}, {"a.test", "/dead", nil, 502, "DENY", "default/dead a.test"},
			{"a.test", "/moved", nil, 301, "DENY", "default/moved a.test"}, {"other.test", "/", nil, 404, "DENY", "/ other.test"},
			{"a.test", "/", agent, 403, "DENY", "/ a.test"},
			{"a.test", "/own", nil, 200, "SAMEORIGIN", "default/own a.test"}, {"a.test", "/own-moved", nil, 301, "SAMEORIGIN", "default/ownmoved a.test"},
		} {
			for _, by := range g.Protocols() {
				by.Host, by.Path, by.Header = c.host, c.path, c.header
				r := g.Do(by).WantStatus(t, c.status)
				want := strict
				if strict == usual && by.Scheme == "http" {
					want = ""
				}
				if got := strings.Join(r.Header.Values("X-Frame-Options"), "|"); got != c.frame || r.Header.Get("X-Powered-By") != "" || r.Header.Get("Server") != "" ||
					r.Header.Get("X-Where") != c.where || strings.Join(r.Header.Values("Strict-Transport-Security"), "|") != want {
					t.Errorf("%s%s by %+v: %v, want X-Where %s, X-Frame-Options %s", c.host, c.path, by, r.Header, c.where, c.frame)
				}
			}
		}
	}
	check(usual)
	for _, r := range g.Raw("GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n") {
		if r.Status != 400 || r.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("a request that NGINX refuses: %d %v", r.Status, r.Header)
		}
	}
	g.ApplyReloading(headgatetest.Config(append(config, "hsts: false")...))
	check(hsts)
}

// What NGINX has is changed at once, and without a reload.
func TestChange(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	echo := headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web"))
	both := []string{"add-headers: default/responses", "proxy-set-headers: default/requests"}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: echo + headgatetest.Config(both...) +
		headgatetest.ConfigMap("responses", "X-A: one") + headgatetest.ConfigMap("requests", "X-B: one") + headgatetest.Ingress("web", "a.test", "/", "web")})
	check := func(status int, response, request string) {
		t.Helper()
		r := g.Get("a.test", "/").WantStatus(t, status)
		if got := r.Header.Get("X-A"); got != response {
			t.Errorf("X-A %q, want %q", got, response)
		}
		if status == 200 && r.Echo.Header.Get("X-B") != request {
			t.Errorf("X-B %v, want %q", r.Echo.Header, request)
		}
	}
	check(200, "one", "one")
	g.Apply(headgatetest.ConfigMap("responses", "X-A: two") + headgatetest.ConfigMap("requests", "X-B: two"))
	check(200, "two", "two")
	g.Delete(headgatetest.ConfigMap("responses", "X-A: two"))
	check(200, "", "two")
	g.Delete(headgatetest.ConfigMap("requests", "X-B: two"))
	check(503, "", "")
	g.Apply(headgatetest.ConfigMap("requests", "X-B: three"))
	check(200, "", "three")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
	g.ApplyReloading(headgatetest.ConfigMap("requests", "X-B: four", "X-Forwarded-Port: 7"))
	check(200, "", "four")
	if r := g.Get("a.test", "/"); r.Echo.Header.Get("X-Forwarded-Port") != "7" {
		t.Errorf("X-Forwarded-Port: %v", r.Echo.Header)
	}
	g.Apply(headgatetest.ConfigMap("requests", "X-B: $proxy_add_x_forwarded_for", "X-Forwarded-Port: 7"))
	check(200, "", "127.0.0.1")
	if r := g.Do(headgatetest.Request{Host: "a.test", Path: "/", Header: http.Header{"X-Forwarded-For": {"192.0.2.1"}}}); r.Echo.Header.Get("X-B") != "192.0.2.1, 127.0.0.1" {
		t.Errorf("X-B: %v", r.Echo.Header)
	}
	g.Apply(headgatetest.Config(both[:1]...) + headgatetest.ConfigMap("responses", "X-A: last"))
	check(200, "last", "")
	g.ApplyReloading(headgatetest.Config())
	check(200, "", "")
}
