package satisfy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// everyProtocol calls do with the requests' protocol and scheme.
func everyProtocol(do func(http2 bool, scheme string)) {
	do(false, "http")
	do(false, "https")
	do(true, "https")
}

// An answer of the service other than yes and 401 lets no client in, and the
// client gets 403 if nothing else could let it in.
func TestWhatTheServiceSays(t *testing.T) {
	t.Parallel()
	s := startService(t)
	manifests, b := startBackend(t)
	both := slices.Concat(basic, s.by("/"), []string{"satisfy: any"})
	manifests += headgatetest.Ingress("both", "both.test", "/", "app", both...) +
		headgatetest.Ingress("service", "service.test", "/", "app", append(s.by("/"), "satisfy: any")...) +
		headgatetest.Ingress("down", "down.test", "/", "app", slices.Concat(basic, []string{"auth-url: http://127.0.0.1:1/", "satisfy: any"})...) +
		headgatetest.Ingress("sign", "sign.test", "/", "app", append(both, "auth-signin: https://login.example/")...) +
		headgatetest.Ingress("kept", "kept.test", "/", "app", append(both, "auth-cache-key: $http_k", "auth-cache-duration: any 5m")...) +
		headgatetest.Ingress("keptsign", "keptsign.test", "/", "app", append(both, "auth-cache-key: $http_k", "auth-signin: https://login.example/")...)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for _, c := range []struct {
		host, say  string
		want       int
		challenges []string
	}{
		{"both.test", "401", 401, []string{challenge, "Bearer"}},
		{"both.test", "403", 401, []string{challenge}},
		{"both.test", "302", 500, nil},
		{"both.test", "404", 500, nil},
		{"both.test", "500", 500, nil},
		{"both.test", "503", 500, nil},
		{"service.test", "403", 403, nil},
		{"service.test", "500", 500, nil},
		{"down.test", "", 500, nil},
		{"sign.test", "401", 302, nil},
		{"sign.test", "403", 401, []string{challenge}},
		{"sign.test", "500", 500, nil},
		// Twice: the second time it is remembered.
		{"kept.test", "401", 401, []string{challenge, "Bearer"}},
		{"kept.test", "401", 401, []string{challenge, "Bearer"}},
		{"kept.test", "403", 401, []string{challenge}},
		{"kept.test", "403", 401, []string{challenge}},
		{"keptsign.test", "401", 302, nil},
		{"keptsign.test", "401", 302, nil},
	} {
		everyProtocol(func(http2 bool, scheme string) {
			header := http.Header{"X-Say": {c.say}, "K": {c.say}}
			r := g.Do(headgatetest.Request{Method: "POST", Host: c.host, Scheme: scheme, HTTP2: http2, Header: header, Body: strings.NewReader("hello")})
			what := fmt.Sprintf("%s, HTTP/2 %v: the service says %q", c.host, http2, c.say)
			if r.Status != c.want || (c.want == 302) != strings.HasPrefix(r.Header.Get("Location"), "https://login.example/?rd=") {
				t.Errorf("%s: status %d to %q, want %d", what, r.Status, r.Header.Get("Location"), c.want)
			}
			wantChallenges(t, what, r, c.challenges...)
			if got := r.Header["Strict-Transport-Security"]; len(got) == 1 != (scheme == "https") {
				t.Errorf("%s: by %s, Strict-Transport-Security: %q", what, scheme, got)
			}
			if n := b.requests.Swap(0); n > 0 {
				t.Errorf("%s: the backend was asked", what)
			}
			if c.host == "service.test" {
				return
			}
			// A good password is enough, without asking the service.
			header.Set("Authorization", password)
			g.Do(headgatetest.Request{Host: c.host, Scheme: scheme, HTTP2: http2, Header: header}).WantStatus(t, 200)
			if n := b.requests.Swap(0); n != 1 {
				t.Errorf("%s: with a password the backend was asked %d times", what, n)
			}
		})
	}
}

// A verdict that is remembered is as good as one that is asked for.
func TestKeptVerdicts(t *testing.T) {
	t.Parallel()
	s := startService(t)
	manifests, _ := startBackend(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests +
		headgatetest.Ingress("kept", "kept.test", "/", "app", slices.Concat(basic, s.by("/"), []string{"satisfy: any", "auth-cache-key: $http_k"})...)})
	for _, c := range []struct {
		key, token, password string
		want                 int
		asked                int64
		user                 string
	}{
		{"a", "ok", "", 200, 1, "alice"},
		{"a", "", "", 200, 0, "alice"},
		{"a", "", password, 200, 0, ""},
		{"b", "", "", 401, 1, ""},
		{"b", "", "", 401, 0, ""},
		{"b", "", password, 200, 0, ""},
		{"c", "", password, 200, 0, ""},
		{"c", "", "", 401, 1, ""},
	} {
		header := http.Header{"K": {c.key}, "X-Token": {c.token}, "X-User": {"spoof"}}
		if c.password != "" {
			header.Set("Authorization", c.password)
		}
		r := g.Do(headgatetest.Request{Host: "kept.test", Header: header}).WantStatus(t, c.want)
		if got := s.asked.Swap(0); got != c.asked {
			t.Errorf("%+v: asked %d times", c, got)
		}
		if got := r.Header.Get("Got-User"); got != c.user {
			t.Errorf("%+v: the backend got %q", c, got)
		}
	}
}

// An auth check that can't be set up lets no client in, and where clients need
// not authenticate, the service is not asked; both with any satisfy.
func TestWhatCannotBeSetUp(t *testing.T) {
	t.Parallel()
	s := startService(t)
	manifests, b := startBackend(t)
	with := func(name, path string, annotations ...string) {
		manifests += headgatetest.Ingress(name, name+".test", path, "app", append(annotations, "satisfy: any")...)
	}
	with("nosecret", "/", append(s.by("/"), "auth-type: basic", "auth-secret: missing")...)
	with("badurl", "/", append(slices.Clone(basic), "auth-url: http://{x}/")...)
	with("badmethod", "/", slices.Concat(basic, s.by("/"), []string{"auth-method: get"})...)
	with("address", "/", append(slices.Clone(basic), "whitelist-source-range: nonsense")...)
	with("circle", "/", slices.Concat(basic, []string{"auth-url: https://$host/x"})...)
	with("exempt", "/.well-known/acme-challenge", slices.Concat(basic, s.by("/"))...)
	with("small", "/", append(slices.Clone(basic), "proxy-body-size: 8", "proxy-buffer-size: 8k")...)
	with("smallboth", "/", slices.Concat(basic, s.by("/"), []string{"proxy-body-size: 8", "proxy-buffer-size: 8k"})...)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for host, want := range map[string]int{"nosecret.test": 503, "badurl.test": 503, "badmethod.test": 503, "address.test": 503} {
		for _, c := range clients {
			g.Do(headgatetest.Request{Host: host, Header: c.header()}).WantStatus(t, want)
		}
	}
	g.Get("circle.test", "/").WantStatus(t, 500)
	if b.requests.Load() > 0 || s.asked.Load() > 0 {
		t.Error("the service was asked")
	}
	g.Get("exempt.test", "/.well-known/acme-challenge/x").WantStatus(t, 200)
	if s.asked.Load() > 0 {
		t.Error("the service was asked about an exempt path")
	}
	// Who passes is still held to what else is said of the route.
	for _, host := range []string{"small.test", "smallboth.test"} {
		for body, want := range map[string]int{"12345678": 200, "123456789": 413} {
			everyProtocol(func(http2 bool, scheme string) {
				g.Do(headgatetest.Request{
					Method: "POST", Host: host, Scheme: scheme, HTTP2: http2, Header: client{password: true}.header(), Body: strings.NewReader(body),
				}).WantStatus(t, want)
			})
		}
	}
}

// The service of all routes counts as a route's own does.
func TestGlobal(t *testing.T) {
	t.Parallel()
	s := startService(t)
	manifests, _ := startBackend(t)
	host := func(name string, annotations ...string) {
		manifests += headgatetest.Ingress(name, name+".test", "/", "app", slices.Concat(basic, annotations)...)
	}
	host("any", "satisfy: any")
	host("all")
	host("without", "satisfy: any", "enable-global-auth: false")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests + headgatetest.Config("global-auth-url: http://"+s.at+"/")})
	for host, wants := range map[string][]int{
		"any.test": {401, 200, 200, 200}, "all.test": {401, 401, 401, 200}, "without.test": {401, 200, 401, 200},
	} {
		for i, c := range clients {
			g.Do(headgatetest.Request{Host: host, Header: c.header()}).WantStatus(t, wants[i])
		}
	}
	// A change counts from the next request on.
	g.Apply(headgatetest.Ingress("any", "any.test", "/", "app", basic...))
	for i, want := range []int{401, 401, 401, 200} {
		g.Do(headgatetest.Request{Host: "any.test", Header: clients[i].header()}).WantStatus(t, want)
	}
	g.Apply(headgatetest.Config("global-auth-url: http://{x}/"))
	g.Do(headgatetest.Request{Host: "any.test", Header: clients[3].header()}).WantStatus(t, 503)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	s := startService(t)
	manifests, b := startBackend(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests + headgatetest.Ingress("web", "web.test", "/", "app",
		append(s.by("/"), "auth-type: digest", "auth-secret: digests", "auth-realm: here", "satisfy: any")...)})
	everyProtocol(func(http2 bool, scheme string) {
		for say, want := range map[string]int{"401": 2, "403": 1} {
			r := g.Do(headgatetest.Request{Host: "web.test", Scheme: scheme, HTTP2: http2, Header: http.Header{"X-Say": {say}}}).WantStatus(t, 401)
			got := r.Header["Www-Authenticate"]
			if len(got) != want || !slices.ContainsFunc(got, func(c string) bool { return strings.HasPrefix(c, `Digest realm="here", qop="auth"`) }) {
				t.Errorf("the service says %s: challenges %q", say, got)
			}
		}
		if b.requests.Swap(0) > 0 {
			t.Error("the backend was asked")
		}
		g.Do(headgatetest.Request{Host: "web.test", Scheme: scheme, HTTP2: http2, Header: http.Header{"X-Token": {"ok"}}}).WantStatus(t, 200)
		b.requests.Store(0)
	})
}
