package externalauth_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/source/dns"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
	"github.com/headgate/headgate/internal/unit"
)

// names has DNS names for 127.0.0.1.
func names(t *testing.T, list ...string) *dns.Settings {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("127.0.0.1 "+strings.Join(list, " ")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return &dns.Settings{Hosts: file, AllowLocal: true}
}

func guardedBy(name, url string, annotations ...string) string {
	return headgatetest.Ingress(name, name+".test", "/", "app", append([]string{"auth-url: " + url}, annotations...)...)
}

func TestWhoIsAsked(t *testing.T) {
	t.Parallel()
	plain, secure, v6, inside := startAuthService(t), startAuthServiceAt(t, "127.0.0.1", true), startAuthServiceAt(t, "::1", false), startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{
		Names: names(t, "auth.example", "tls.example"),
		Manifests: app(t) + headgatetest.Service("auth") + headgatetest.Endpoints("auth", inside.at) +
			guardedBy("v4", "http://"+plain.at+"/cookie") +
			guardedBy("v6", "http://[::1]:"+v6.port()+"/cookie") +
			guardedBy("tls", "https://127.0.0.1:"+secure.port()+"/cookie") + headgatetest.Config("auth-url-ca: off") +
			guardedBy("name", "http://auth.example:"+plain.port()+"/cookie") +
			guardedBy("tlsname", "https://tls.example:"+secure.port()+"/cookie") +
			guardedBy("service", "http://auth.default.svc.cluster.local/cookie") +
			guardedBy("short", "http://auth.default.svc:80/cookie"),
	})
	for _, c := range []struct {
		name             string
		service          *authService
		host, serverName string
	}{
		{"v4", plain, "127.0.0.1", ""},
		{"v6", v6, "[::1]", ""},
		{"tls", secure, "127.0.0.1", ""},
		{"name", plain, "auth.example", ""},
		{"tlsname", secure, "tls.example", "tls.example"},
		{"service", inside, "auth.default.svc.cluster.local", ""},
		{"short", inside, "auth.default.svc", ""},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			r := headgatetest.Request{Host: c.name + ".test", Scheme: scheme, HTTP2: http2}
			g.Do(r).WantStatus(t, 401)
			r.Header = http.Header{"Cookie": {"session=ok"}}
			g.Do(r).WantStatus(t, 200)
			if a := c.service.last(t); a.Host != c.host || a.serverName != c.serverName || a.RequestURI != "/cookie" {
				t.Errorf("%s: asked %q (SNI %q) for %s", c.name, a.Host, a.serverName, a.RequestURI)
			}
		})
	}
	if u, err := g.Client.Unit(t.Context(), unit.Backend.Key("/"+strings.Replace(plain.at, ":", "/", 1))); err != nil || !strings.Contains(string(u.Payload), plain.at) {
		t.Errorf("the data plane has %+v, %v", u, err)
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

// A service that can't be asked lets no request pass.
func TestUnreachableService(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	dead := headgatetest.Address(porttest.Free(t))
	g := headgatetest.Start(t, headgatetest.Options{
		NoLocalAddresses: true,
		Manifests: app(t) + headgatetest.Service("auth") + headgatetest.Endpoints("auth") + headgatetest.Service("dead") + headgatetest.Endpoints("dead", dead) +
			guardedBy("empty", "http://auth.default.svc/check") +
			guardedBy("missing", "http://missing.default.svc/check") +
			guardedBy("elsewhere", "http://auth.elsewhere.svc/check") +
			guardedBy("port", "http://auth.default.svc:81/check") +
			guardedBy("dead", "http://dead.default.svc/check") +
			guardedBy("name", "http://unknown.example/check") +
			guardedBy("localhost", "http://localhost:"+j.port()+"/check") +
			guardedBy("loopback", "http://"+j.at+"/check") +
			guardedBy("mapped", "http://[::ffff:127.0.0.1]:"+j.port()+"/check") +
			guardedBy("any", "http://0.0.0.0:"+j.port()+"/check") +
			guardedBy("loopback6", "http://[::1]:"+j.port()+"/check") +
			guardedBy("metadata", "http://169.254.169.254/check") +
			guardedBy("octal", "http://0177.0.0.1:"+j.port()+"/check") +
			guardedBy("number", "http://2130706433:"+j.port()+"/check") +
			guardedBy("secure", "https://dead.default.svc/check", "auth-signin: https://login.example/"),
	})
	for _, host := range []string{
		"empty", "missing", "elsewhere", "port", "dead", "name", "localhost", "loopback", "mapped", "any", "loopback6", "metadata",
		"octal", "number", "secure",
	} {
		if r := g.Get(host+".test", "/"); r.Status != 500 && r.Status != 503 || r.Echo != nil {
			t.Errorf("%s: status %d, backend %v", host, r.Status, r.Echo)
		}
	}
	j.wantAsked(t, 0)
}

// As soon as a service has an endpoint, it is asked.
func TestServiceGetsAnEndpoint(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{
		Manifests: app(t) + headgatetest.Service("auth") + headgatetest.Endpoints("auth") + guardedBy("empty", "http://auth.default.svc/check"),
	})
	g.Get("empty.test", "/").WantStatus(t, 500)
	j.wantAsked(t, 0)
	g.Apply(headgatetest.Endpoints("auth", j.at))
	g.Get("empty.test", "/").WantStatus(t, 200)
	j.wantAsked(t, 1)
	g.Delete(headgatetest.Service("auth"))
	g.Get("empty.test", "/").WantStatus(t, 500)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

// ownAuthService is an Ingress that has the auth service answer for a path of a host.
func ownAuthService(name, host, path string, annotations ...string) string {
	return headgatetest.Ingress(name, host, path, "auth", annotations...)
}

// The check of a host goes to the host itself, not around it, where that has a
// route for it.
func TestOwnHost(t *testing.T) {
	t.Parallel()
	j, outside := startAuthService(t), startAuthService(t)
	const check, signIn = "auth-url: https://$host/cookie", "auth-signin: https://$host/start?rd=$escaped_request_uri"
	g := headgatetest.Start(t, headgatetest.Options{
		Names: names(t, "outside.test", "circle.test", "exact.test"),
		Manifests: app(t) + headgatetest.Service("auth") + headgatetest.Endpoints("auth", j.at) +
			headgatetest.Ingress("exact", "exact.test", "/", "app", check, signIn, "auth-response-headers: X-User") + ownAuthService("exact-sso", "exact.test", "/cookie") +
			headgatetest.Ingress("wild", "*.wild.test", "/", "app", check, signIn) + ownAuthService("wild-sso", "*.wild.test", "/cookie") +
			headgatetest.Ingress("plain", "plain.test", "/", "app", "auth-url: http://$host/cookie") + ownAuthService("plain-sso", "plain.test", "/cookie", "ssl-redirect: false") +
			headgatetest.Ingress("pattern", "pattern.test", "/a/(.*)", "app", check, "use-regex: true") + ownAuthService("pattern-sso", "pattern.test", "/coo") +
			headgatetest.Ingress("outside", "outside.test", "/", "app", "auth-url: http://$host:"+outside.port()+"/cookie") +
			headgatetest.Ingress("none", "none.test", "/", "app", check) +
			headgatetest.Ingress("nowild", "*.nowild.test", "/", "app", check) + ownAuthService("nowild-sso", "*.nowild.test", "/other") +
			headgatetest.Ingress("circle", "circle.test", "/", "app", check) + ownAuthService("circle-sso", "circle.test", "/cookie", check) +
			headgatetest.Ingress("inner", "inner.test", "/private", "app", check) + ownAuthService("inner-sso", "inner.test", "/cookie", check) +
			headgatetest.Ingress("inner-open", "inner.test", "/", "app"),
	})
	for _, c := range []struct {
		host, path string
		service    *authService
		signIn     bool
	}{
		{"exact.test", "/x", j, true},
		{"a.wild.test", "/x", j, true},
		{"b.wild.test", "/x", j, true},
		{"plain.test", "/x", j, false},
		{"pattern.test", "/a/x", j, false},
		{"outside.test", "/x", outside, false},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			r := headgatetest.Request{Host: c.host, Path: c.path, Scheme: scheme, HTTP2: http2}
			refused := g.Do(r)
			want, location := 401, ""
			if c.signIn {
				want, location = 302, "https://"+c.host+"/start?rd=%2Fx"
			}
			if refused.WantStatus(t, want); refused.Header.Get("Location") != location {
				t.Errorf("%s: redirected to %q, want %q", c.host, refused.Header.Get("Location"), location)
			}
			r.Header = http.Header{"Cookie": {"session=ok"}, "X-Forwarded-Host": {"elsewhere.test"}}
			passed := g.Do(r).WantStatus(t, 200)
			if passed.Echo == nil || passed.Echo.Host != c.host {
				t.Errorf("%s: the backend got %+v", c.host, passed.Echo)
			}
			if a := c.service.last(t); a.Host != c.host || a.Header.Get("X-Original-Url") != scheme+"://"+c.host+c.path {
				t.Errorf("%s: asked %s with %v", c.host, a.Host, a.Header)
			}
		})
	}
	// What the host has no open route for is resolved, or is a bad value; and a
	// circle ends.
	g.Get("none.test", "/").WantStatus(t, 500)
	g.Get("a.nowild.test", "/").WantStatus(t, 503)
	g.Get("circle.test", "/").WantStatus(t, 500)
	g.Get("circle.test", "/cookie").WantStatus(t, 500)
	g.Do(headgatetest.Request{Host: "inner.test", Path: "/private", Header: http.Header{"Cookie": {"session=ok"}}}).WantStatus(t, 500)
	const logged = "is behind its own auth check"
	headgatetest.Eventually(t, "the circle is logged", func() bool { return strings.Contains(g.Log.String(), logged) })
	if n := strings.Count(g.Log.String(), logged); n != 1 {
		t.Errorf("the circle was gone round %d times", n)
	}
	// It goes with the host's routes.
	g.Apply(ownAuthService("nowild-sso", "*.nowild.test", "/cookie"))
	g.Get("a.nowild.test", "/").WantStatus(t, 401)
	g.Delete(ownAuthService("nowild-sso", "*.nowild.test", "/cookie"))
	g.Get("a.nowild.test", "/").WantStatus(t, 503)
	g.Apply(ownAuthService("none-sso", "none.test", "/cookie"))
	g.Do(headgatetest.Request{Host: "none.test", Header: http.Header{"Cookie": {"session=ok"}}}).WantStatus(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

// Clients do not choose the service that checks them.
func TestClientsDoNotChooseTheService(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	manifests := app(t)
	for name, host := range map[string]string{
		"header": "$http_x", "argument": "$arg_x", "cookie": "$cookie_x", "uri": "$uri", "part": "127.0.0.$arg_x", "user": "a$arg_x@127.0.0.1",
		"braces": "${http_x}", "port": "127.0.0.1:$arg_x", "escaped": "$escaped_request_uri", "sub": "$http_x.test", "args": "$args",
	} {
		manifests += guardedBy(name, "http://"+host+":"+j.port()+"/check")
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, name := range []string{"header", "argument", "cookie", "uri", "part", "user", "braces", "port", "escaped", "sub", "args"} {
			r := g.Do(headgatetest.Request{
				Host: name + ".test", Path: "/?x=127.0.0.1", Scheme: scheme, HTTP2: http2,
				Header: http.Header{"X": {"127.0.0.1"}, "Cookie": {"x=127.0.0.1"}},
			})
			if r.Status != 503 || r.Echo != nil {
				t.Errorf("%s by %s: status %d, backend %v", name, r.Proto, r.Status, r.Echo)
			}
		}
		j.wantAsked(t, 0)
	})
}
