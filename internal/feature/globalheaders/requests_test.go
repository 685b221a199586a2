package globalheaders_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const requestHeaders = "X-Static: on|X-User: |X-Forwarded-Proto: proto $scheme|X-Original-Forwarded-Host: |X-Swapped: $http_x_static|X-Bad: $1|Content-Length: 5"

// services are echo backends, and an auth service.
func services(t *testing.T) string {
	t.Helper()
	auth := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-User", "alice")
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	return headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web")) +
		headgatetest.Service("errors") + headgatetest.Endpoints("errors", headgatetest.StartEcho(t, "errors")) +
		headgatetest.Service("none") + headgatetest.Endpoints("none") +
		headgatetest.Ingress("ask", "ask.test", "/", "web", "auth-url: http://"+auth+"/ask", "auth-response-headers: X-User", "auth-proxy-set-headers: default/call") +
		headgatetest.Ingress("refuse", "refuse.test", "/", "web", "auth-url: http://"+auth+"/refuse", "custom-http-errors: 403", "default-backend: errors") +
		headgatetest.ConfigMap("call", "X-Static: of the call")
}

// Backends get the headers instead of the client's, by any protocol, also those that answer
// instead of others. What an Ingress sets has precedence.
func TestRequests(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: services(t) + headgatetest.Config("proxy-set-headers: default/all", "use-http3: true") +
		headgatetest.ConfigMap("all", strings.Split(requestHeaders, "|")...) +
		headgatetest.Ingress("web", "web.test", "/", "web") + headgatetest.Ingress("fcgi", "fcgi.test", "/", "none", "backend-protocol: FCGI") +
		headgatetest.Ingress("profile", "web.test", "/profile", "web", "proxy-buffering: on") +
		headgatetest.Ingress("none", "none.test", "/", "none", "default-backend: errors") +
		headgatetest.Ingress("listed", "listed.test", "/", "web", "whitelist-source-range: 192.0.2.1/32", "custom-http-errors: 403", "default-backend: errors")})
	for _, c := range []struct{ host, path, by, user string }{
		{"web.test", "/", "web", ""}, {"web.test", "/profile", "web", ""}, {"none.test", "/", "errors", ""},
		{"ask.test", "/", "web", "alice"}, {"refuse.test", "/", "errors", ""}, {"listed.test", "/", "errors", ""},
	} {
		for _, by := range g.Protocols() {
			for _, method := range []string{"GET", "POST"} {
				by.Host, by.Path, by.Method = c.host, c.path, method
				by.Header = http.Header{"X-User": {"mallory"}, "X-Static": {"client's"}, "X-Forwarded-Host": {"evil.test"}, "X-Bad": {"1"}}
				if method == "POST" {
					by.Body = strings.NewReader("body")
				}
				r := g.Do(by)
				if r.Echo == nil || r.Echo.Backend != c.by {
					t.Errorf("%s%s by %+v: %d %s", c.host, c.path, by, r.Status, r.Body)
					continue
				}
				for name, want := range map[string]string{
					"X-Static": "on", "X-User": c.user, "X-Forwarded-Proto": "proto " + by.Scheme, "X-Swapped": "client's", "X-Bad": "",
					"X-Original-Forwarded-Host": "", "X-Forwarded-Scheme": by.Scheme, "X-Forwarded-Host": c.host,
				} {
					if got := strings.Join(r.Echo.Header.Values(name), "|"); got != want {
						t.Errorf("%s%s by %+v: %s %q, want %q", c.host, c.path, by, name, got, want)
					}
				}
			}
		}
	}
}

// Without the headers no backend is asked, and the health page is as it was.
func TestDenied(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: services(t) + headgatetest.Config("proxy-set-headers: default/missing") +
		headgatetest.Ingress("web", "web.test", "/", "web") + headgatetest.Ingress("moved", "web.test", "/moved", "web", "permanent-redirect: https://b.test/")})
	for _, by := range g.Protocols()[:3] {
		for _, c := range []struct {
			host, path string
			status     int
		}{{"web.test", "/", 503}, {"web.test", "/moved", 503}, {"ask.test", "/", 503}, {"other.test", "/", 404}, {"other.test", "/healthz", 200}} {
			by.Host, by.Path = c.host, c.path
			g.Do(by).WantStatus(t, c.status)
		}
	}
	g.Apply(headgatetest.Config("proxy-set-headers: missing"))
	g.Get("web.test", "/").WantStatus(t, 503)
	g.Apply(headgatetest.Config("proxy-set-headers: "))
	g.Get("web.test", "/").WantStatus(t, 200)
}

// The header that addresses come from stays the client's: NGINX would read another one.
func TestAddressHeader(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: services(t) +
		headgatetest.Config("proxy-set-headers: default/all", "enable-real-ip: true", "forwarded-for-header: X-Client", "proxy-real-ip-cidr: 127.0.0.0/8") +
		headgatetest.ConfigMap("all", "X-Client: 192.0.2.9", "X-Static: on") + headgatetest.Ingress("web", "web.test", "/", "web", "proxy-buffering: on")})
	r := g.Do(headgatetest.Request{Host: "web.test", Header: http.Header{}}).WantStatus(t, 200)
	if h := r.Echo.Header; h.Get("X-Real-Ip") != "127.0.0.1" || h.Get("X-Client") != "" || h.Get("X-Static") != "on" {
		t.Errorf("the backend got %v", h)
	}
}
