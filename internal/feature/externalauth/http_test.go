package externalauth_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func TestWhoPasses(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-App", "app") }))
	manifests := headgatetest.Service("app") + headgatetest.Endpoints("app", backend) + headgatetest.Ingress("open", "open.test", "/", "app")
	wants := map[int]int{
		200: 200, 201: 200, 202: 200, 204: 200, 206: 200, 401: 401, 403: 403,
		301: 500, 302: 500, 304: 500, 400: 500, 404: 500, 407: 500, 429: 500, 500: 500, 502: 500, 503: 500,
	}
	for status := range wants {
		manifests += j.guarded(fmt.Sprintf("s%d.test", status), fmt.Sprintf("/status/%d", status), "ssl-redirect: false")
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for status, want := range wants {
			for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
				r := g.Do(headgatetest.Request{Method: method, Host: fmt.Sprintf("s%d.test", status), Scheme: scheme, HTTP2: http2})
				if r.WantStatus(t, want); r.Status != want || (r.Header.Get("X-App") != "") != (want == 200) {
					t.Errorf("the service answers %d to %s by %s: %d, backend %q", status, method, r.Proto, r.Status, r.Header.Get("X-App"))
				}
			}
		}
		j.wantAsked(t, 4*len(wants))
		g.Do(headgatetest.Request{Host: "open.test", Scheme: scheme, HTTP2: http2}).WantStatus(t, 200)
		j.wantAsked(t, 0)
	})
	if n := g.State().Kept; n != 0 {
		t.Errorf("%d requests are kept", n)
	}
}

func TestRequestsToTheService(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + j.guarded("a.test", "/check/here?fixed=1") +
		j.guarded("post.test", "/check", "auth-method: POST") + j.guarded("back.test", "/check", "auth-request-redirect: https://app.example/back") +
		j.guarded("return.test", "/check", "auth-request-redirect: https://$host$request_uri") +
		j.guarded("vars.test", "/v/$host?m=$request_method&u=$request_uri&x=$http_x&c=$cookie_c&p=$uri") +
		j.guarded("more.test", "/check", "auth-proxy-set-headers: more") + j.guarded("path.test", "/check$request_uri") +
		"---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: more}\ndata: {X-Extra: one, X-Var: $host, X-Forwarded-Proto: $scheme, X-None: ''}\n",
	})
	spoofed := http.Header{
		"Cookie": {"c=1"}, "X-Mine": {"1"}, "Authorization": {"Bearer t"}, "X-Original-Uri": {"/evil"}, "X-Original-Url": {"http://evil/"},
		"X-Forwarded-Host": {"evil"}, "X-Forwarded-Uri": {"/evil"}, "X-Forwarded-Proto": {"evil"}, "X-Scheme": {"evil"}, "X-Real-Ip": {"evil"},
		"X-Original-Method": {"EVIL"}, "X-Auth-Request-Redirect": {"evil"}, "X-Forwarded-Method": {"EVIL"}, "X-Sent-From": {"evil"},
	}
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		r := g.Do(headgatetest.Request{Method: "PUT", Host: "a.test", Path: "/app/x?y=1&z=%20", Scheme: scheme, HTTP2: http2, Header: spoofed.Clone(), Body: strings.NewReader("hello")})
		r.WantStatus(t, 200)
		if r.Echo.BodyLength != 5 || r.Echo.Method != "PUT" || r.Echo.Header.Get("X-Mine") != "1" {
			t.Errorf("the backend saw %+v", r.Echo)
		}
		a := j.last(t)
		if a.Method != "GET" || a.RequestURI != "/check/here?fixed=1" || a.Host != "127.0.0.1" || a.body != 0 || a.ContentLength != 0 {
			t.Errorf("asked %s %s of %s with %d bytes", a.Method, a.RequestURI, a.Host, a.body)
		}
		for name, want := range map[string]string{
			"X-Original-Url": scheme + "://a.test/app/x?y=1&z=%20", "X-Original-Method": "PUT", "X-Auth-Request-Redirect": "/app/x?y=1&z=%20",
			"X-Sent-From": "nginx-ingress-controller", "X-Real-Ip": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "Cookie": "c=1",
			"Authorization": "Bearer t", "X-Mine": "1", "X-Original-Uri": "", "X-Scheme": "", "X-Forwarded-Proto": "", "X-Forwarded-Host": "",
			"X-Forwarded-Uri": "", "X-Forwarded-Method": "", "Upgrade": "", "Expect": "",
		} {
			if got := strings.Join(a.Header[name], "|"); got != want {
				t.Errorf("over %s the service got %s: %q, want %q", r.Proto, name, got, want)
			}
		}
	})

	g.Get("post.test", "/p").WantStatus(t, 200)
	if a := j.last(t); a.Method != "POST" || a.Header.Get("X-Original-Uri") != "/p" || a.Header.Get("X-Scheme") != "http" {
		t.Errorf("auth-method: asked %s with %v", a.Method, a.Header)
	}
	g.Get("back.test", "/p").WantStatus(t, 200)
	if got := j.last(t).Header.Get("X-Auth-Request-Redirect"); got != "https://app.example/back" {
		t.Errorf("auth-request-redirect: the service got %q", got)
	}

	g.Get("return.test", "/p%20q?a=b").WantStatus(t, 200)
	if got := j.last(t).Header.Get("X-Auth-Request-Redirect"); got != "https://return.test/p%20q?a=b" {
		t.Errorf("auth-request-redirect with variables: the service got %q", got)
	}

	// What a client puts into a variable stays a part of its parameter.
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		r := g.Do(headgatetest.Request{Host: "vars.test", Path: "/a%20b%3Fq?c=d", Scheme: scheme, HTTP2: http2, Header: http.Header{
			"X": {"1&admin=1#$host ${remote_addr} %41"}, "Cookie": {"c=a&b=c"},
		}}).WantStatus(t, 200)
		a := j.last(t)
		if want := "/v/vars.test?m=GET&u=/a%20b%3Fq?c=d&x=1%26admin%3D1%23%24host%20%24%7Bremote_addr%7D%20%2541&c=a%26b%3Dc&p=/a%20b%3Fq"; a.RequestURI != want {
			t.Errorf("by %s asked for %s, want %s", r.Proto, a.RequestURI, want)
		}
	})

	// Headers of the ConfigMap are for the service alone.
	r := g.Do(headgatetest.Request{Host: "more.test", Header: http.Header{"X-Extra": {"mine", "too"}, "X-None": {"mine"}}}).WantStatus(t, 200)
	a := j.last(t)
	if a.Header.Get("X-Extra") != "one" || a.Header.Get("X-Var") != "more.test" || a.Header.Get("X-Forwarded-Proto") != "http" || a.Header.Get("X-None") != "" {
		t.Errorf("auth-proxy-set-headers: the service got %v", a.Header)
	}
	if h := r.Echo.Header; !slices.Equal(h["X-Extra"], []string{"mine", "too"}) || h.Get("X-Var") != "" || h.Get("X-None") != "mine" {
		t.Errorf("auth-proxy-set-headers: the backend got %v", h)
	}

	// A client can't leave the path that the service is asked for.
	g.Get("path.test", "/x?y").WantStatus(t, 200)
	if a = j.last(t); a.RequestURI != "/check/x?y" {
		t.Errorf("asked for %s", a.RequestURI)
	}
	for _, path := range []string{"/x/../../status/200", "/x/%2e%2e/%2E./status/200", "/./x", "/x%2f..%2f..%2fy", "/a/..;/b"} {
		g.Get("path.test", path).WantStatus(t, 400)
	}
	j.wantAsked(t, 0)

	// The service gets the path that the backend gets.
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		r := g.Do(headgatetest.Request{Host: "path.test", Path: "/public/../a%20b?c=d", Scheme: scheme, HTTP2: http2}).WantStatus(t, 200)
		a := j.last(t)
		if a.RequestURI != "/check/a%20b?c=d" || !strings.HasSuffix(a.Header.Get("X-Original-Url"), "//path.test/a%20b?c=d") || r.Echo.Target != "/a%20b?c=d" {
			t.Errorf("over %s the service was asked for %s and got %s, and the backend was asked for %s", r.Proto, a.RequestURI, a.Header.Get("X-Original-Url"), r.Echo.Target)
		}
	})
}

func TestRequestsToTheBackend(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + j.guarded("none.test", "/check") +
		j.guarded("some.test", "/check", "auth-response-headers: X-User, x-groups,X-Missing,Authorization", "auth-cache-key: $http_k")})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for range 3 { // from the second time on by the cache
			r := g.Do(headgatetest.Request{Host: "some.test", Scheme: scheme, HTTP2: http2, Header: http.Header{
				"X-User": {"spoof", "spoof"}, "X-Missing": {"spoof"}, "Authorization": {"Bearer mine"}, "K": {fmt.Sprint(scheme, http2)},
				"Answer": {"Authorization: Bearer made"},
			}}).WantStatus(t, 200)
			h := r.Echo.Header
			if !slices.Equal(h["X-User"], []string{"alice"}) || h.Get("X-Groups") != "staff, admin" || h["X-Missing"] != nil || !slices.Equal(h["Authorization"], []string{"Bearer made"}) {
				t.Errorf("over %s the backend got %v", r.Proto, h)
			}
		}
		j.wantAsked(t, 1)
	})
	r := g.Do(headgatetest.Request{Host: "none.test", Header: http.Header{"X-User": {"mine"}}}).WantStatus(t, 200)
	if got := r.Echo.Header.Get("X-User"); got != "mine" {
		t.Errorf("without auth-response-headers the backend got %q", got)
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("Set-Cookie", "own=1")
		w.Header().Set("Location", "/")
		w.WriteHeader(status)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("app") + headgatetest.Endpoints("app", backend) + j.guarded("a.test", "/check") +
		j.guarded("always.test", "/check", "auth-always-set-cookie: true") + j.guarded("no.test", "/cookie") +
		j.guarded("alwaysno.test", "/cookie", "auth-always-set-cookie: true") + j.guarded("alwaysforbidden.test", "/status/403", "auth-always-set-cookie: true") +
		j.guarded("signin.test", "/cookie", "auth-signin: https://login.example/start")})
	header := http.Header{"Answer": {"Set-Cookie: one=1;Set-Cookie: two=2;WWW-Authenticate: Bearer"}}
	both, mine, own := []string{"own=1", "one=1", "two=2"}, []string{"one=1", "two=2"}, []string{"own=1"}
	for _, c := range []struct {
		host, path string
		status     int
		want       []string
	}{
		{"a.test", "/200", 200, both},
		{"a.test", "/204", 204, both},
		{"a.test", "/302", 302, both},
		{"a.test", "/404", 404, own},
		{"a.test", "/500", 500, own},
		{"always.test", "/404", 404, both},
		{"always.test", "/500", 500, both},
		{"no.test", "/200", 401, nil},
		{"alwaysno.test", "/200", 401, mine},
		{"alwaysforbidden.test", "/200", 403, mine},
		{"signin.test", "/200", 302, mine},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			r := g.Do(headgatetest.Request{Host: c.host, Path: c.path, Scheme: scheme, HTTP2: http2, Header: header.Clone()}).WantStatus(t, c.status)
			if got := r.Header["Set-Cookie"]; !slices.Equal(got, c.want) {
				t.Errorf("%s%s: cookies %q, want %q", c.host, c.path, got, c.want)
			}
			want := ""
			if c.status == 401 {
				want = "Bearer"
			}
			if got := r.Header.Get("WWW-Authenticate"); got != want {
				t.Errorf("%s%s: WWW-Authenticate %q, want %q", c.host, c.path, got, want)
			}
		})
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	unauthorized := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(401)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + headgatetest.Service("refuses") + headgatetest.Endpoints("refuses", unauthorized) +
		j.guarded("plain.test", "/cookie", "auth-signin: https://login.example/start") +
		j.guarded("more.test", "/cookie", "auth-signin: https://login.example/start?a=b", "auth-signin-redirect-param: next") +
		j.guarded("vars.test", "/cookie", "auth-signin: https://$host/oauth2/start?rd=$escaped_request_uri") +
		j.guarded("path.test", "/cookie", "auth-signin: /login") +
		j.guarded("relative.test", "/cookie", "auth-signin: /login?a=b", "relative-redirects: true") +
		j.guarded("scheme.test", "/cookie", "auth-signin: $scheme://$http_host/login") +
		j.guarded("percent.test", "/cookie", "auth-signin: https://login.example/a%20b?rd=%2Fhome") +
		j.guarded("fragment.test", "/cookie", "auth-signin: https://login.example/#/login") +
		j.guarded("slashes.test", "/cookie", "auth-signin: //login.example/") +
		j.guarded("cached.test", "/cookie", "auth-signin: https://login.example/", "auth-cache-key: x") +
		j.guarded("forbidden.test", "/status/403", "auth-signin: https://login.example/") +
		j.guarded("down.test", "/status/500", "auth-signin: https://login.example/") +
		headgatetest.Ingress("passed", "passed.test", "/", "refuses", "auth-url: http://"+j.at+"/check", "auth-signin: https://login.example/"),
	})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, c := range []struct {
			host   string
			status int
			want   string
		}{
			{"plain.test", 302, "https://login.example/start?rd=" + scheme + "://plain.test%2Fx%3Fy%3D1%26z"},
			{"more.test", 302, "https://login.example/start?a=b&next=" + scheme + "://more.test%2Fx%3Fy%3D1%26z"},
			{"vars.test", 302, "https://vars.test/oauth2/start?rd=%2Fx%3Fy%3D1%26z"},
			{"path.test", 302, scheme + "://path.test/login?rd=" + scheme + "://path.test%2Fx%3Fy%3D1%26z"},
			{"relative.test", 302, "/login?a=b&rd=" + scheme + "://relative.test%2Fx%3Fy%3D1%26z"},
			{"scheme.test", 302, scheme + "://scheme.test/login?rd=" + scheme + "://scheme.test%2Fx%3Fy%3D1%26z"},
			{"percent.test", 302, "https://login.example/a%20b?rd=%2Fhome"},
			{"fragment.test", 302, "https://login.example/#/login?rd=" + scheme + "://fragment.test%2Fx%3Fy%3D1%26z"},
			{"slashes.test", 302, scheme + "://slashes.test//login.example/?rd=" + scheme + "://slashes.test%2Fx%3Fy%3D1%26z"},
			{"cached.test", 302, "https://login.example/?rd=" + scheme + "://cached.test%2Fx%3Fy%3D1%26z"},
			{"cached.test", 302, "https://login.example/?rd=" + scheme + "://cached.test%2Fx%3Fy%3D1%26z"},
			{"forbidden.test", 403, ""},
			{"down.test", 500, ""},
			{"passed.test", 401, ""},
		} {
			r := g.Do(headgatetest.Request{Method: "POST", Host: c.host, Path: "/x?y=1&z", Scheme: scheme, HTTP2: http2, Body: strings.NewReader("hello")}).WantStatus(t, c.status)
			if got := r.Header.Get("Location"); got != c.want {
				t.Errorf("%s: redirected to %q, want %q", c.host, got, c.want)
			}
			if got := r.Header.Get("Strict-Transport-Security"); (got != "") != (scheme == "https") {
				t.Errorf("%s, %s: Strict-Transport-Security %q", c.host, scheme, got)
			}
			if got := r.Header.Get("WWW-Authenticate"); (got == "Basic") != (c.host == "passed.test") {
				t.Errorf("%s: WWW-Authenticate %q", c.host, got)
			}
		}
		signedIn := http.Header{"Cookie": {"session=ok"}}
		g.Do(headgatetest.Request{Host: "plain.test", Path: "/x", Scheme: scheme, HTTP2: http2, Header: signedIn}).WantStatus(t, 200)
	})
}

// TestPathsThatNoRuleHas: the host's other paths are guarded as its first
// Ingress says, though only the built-in default backend answers there.
func TestPathsThatNoRuleHas(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	rule := func(host string, annotations ...string) string {
		name, _, _ := strings.Cut(host, ".")
		return headgatetest.Ingress(name, host, "/app", "app", append([]string{"auth-url: http://" + j.at + "/cookie", "ssl-redirect: false"}, annotations...)...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + rule("a.test") + rule("sign.test", "auth-signin: https://sign.example/in", "proxy-body-size: 8") +
		rule("cached.test", "auth-cache-key: $cookie_session", "auth-cache-duration: 200 1m") + headgatetest.Ingress("small", "small.test", "/app", "app", "proxy-body-size: 8")})
	key := http.Header{"Cookie": {"session=ok"}}
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		ask := func(host string, header http.Header) headgatetest.Response {
			return g.Do(headgatetest.Request{Host: host, Path: "/none", Scheme: scheme, HTTP2: http2, Header: header})
		}
		ask("a.test", nil).WantStatus(t, 401)
		ask("a.test", key).WantStatus(t, 404)
		j.wantAsked(t, 2)
		ask("sign.test", nil).WantStatus(t, 302)
		ask("cached.test", nil).WantStatus(t, 401)
		ask("cached.test", key).WantStatus(t, 404)
		j.take()
		ask("cached.test", key).WantStatus(t, 404)
		j.wantAsked(t, 0)
		for _, host := range []string{"sign.test", "small.test"} {
			for length, want := range map[int]int{8: 404, 9: 413} {
				g.Do(headgatetest.Request{
					Method: "POST", Host: host, Path: "/none", Scheme: scheme, HTTP2: http2, Header: key, Body: strings.NewReader(strings.Repeat("x", length)),
				}).WantStatus(t, want)
			}
		}
		j.take()
	})
	if n := g.State().Kept; n != 0 {
		t.Errorf("%d requests are kept", n)
	}
}

// TestGroups: $1 to $9 are those of the route's path, and stay in their place.
func TestGroups(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) +
		headgatetest.Ingress("a", "a.test", "/t/([^/]+)/(.*)", "app", "use-regex: true", "auth-url: http://"+j.at+"/check/$2?team=$1") +
		headgatetest.Ingress("in", "a.test", "/in/([^/]+)", "app", "use-regex: true", "auth-url: http://"+j.at+"/cookie", "auth-signin: https://in.example/$1?x=1")})
	g.Get("a.test", "/t/a%26b=c/x/y").WantStatus(t, 200)
	if got := j.last(t).RequestURI; got != "/check/x/y?team=a%26b%3Dc" {
		t.Errorf("asked for %s", got)
	}
	if got := g.Get("a.test", "/in/blue").WantStatus(t, 302).Header.Get("Location"); got != "https://in.example/blue?x=1&rd=http://a.test%2Fin%2Fblue" {
		t.Errorf("sent to %s", got)
	}
}
