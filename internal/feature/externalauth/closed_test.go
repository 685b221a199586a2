package externalauth_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// counted is a backend that counts its requests.
func counted(t *testing.T) (manifests string, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	at := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { requests.Add(1) }))
	return headgatetest.Service("app") + headgatetest.Endpoints("app", at), requests
}

// With any other annotations on a route, none of its requests reaches a backend
// if the service refuses it.
func TestNoWayAround(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	manifests, requests := counted(t)
	bypasses := map[string][]string{
		"nothing": nil, "rewrite": {"rewrite-target: /.well-known/acme-challenge/x"}, "groups": {"use-regex: true", "rewrite-target: /$1"},
		"regex": {"use-regex: true"}, "root": {"app-root: /app"}, "permanent": {"permanent-redirect: https://x.example"}, "www": {"from-to-www-redirect: true"},
		"cors": {"enable-cors: true"}, "cached": {"auth-cache-key: x"}, "cookies": {"auth-always-set-cookie: true"},
		"signin": {"auth-signin: https://login.example/"}, "streamed": {"proxy-request-buffering: off"}, "measured": {"proxy-body-size: 3m"},
		"any": {"satisfy: any"}, "global": {"enable-global-auth: false"}, "relative": {"relative-redirects: true"},
		"default": {"default-backend: app"}, "https": {"ssl-redirect: false"}, "headers": {"auth-response-headers: X-User"},
	}
	var hosts []string
	for _, status := range []int{401, 403, 404, 500, 302} {
		for name, annotations := range bypasses {
			host := fmt.Sprintf("%s%d.test", name, status)
			hosts = append(hosts, host)
			manifests += j.guarded(host, fmt.Sprintf("/status/%d", status), annotations...)
			canary := headgatetest.Ingress(strings.TrimSuffix(host, ".test")+"-canary", host, "/", "app", "canary: true", "canary-by-header: X-Canary", "canary-weight: 50")
			manifests += strings.Replace(canary, "name: app", "name: other", 1)
		}
	}
	other, others := counted(t)
	manifests += strings.ReplaceAll(other, "app", "other")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	paths := []string{
		"/", "/x", "//", "/.well-known/acme-challenge", "/.well-known/acme-challenge/x", "/x/../.well-known/acme-challenge/x",
		"/.well-known/acme-challenge/../../x", "/%2ewell-known/acme-challenge/x", "/.WELL-KNOWN/acme-challenge/x", "/.well-known%2facme-challenge/x",
		"/_check_http", "/@refused", "/healthz", "/nginx_status", "/?rd=x",
	}
	plain, secure := g.NewClient(false), g.NewClient(true)
	defer plain.CloseIdleConnections()
	defer secure.CloseIdleConnections()
	for _, host := range hosts {
		for i, path := range paths {
			for _, r := range []headgatetest.Request{{Host: host, Path: path}, {Host: host, Path: path, Scheme: "https", HTTP2: true}, {Host: "www." + host, Path: path}} {
				r.Method = []string{"GET", "POST", "OPTIONS", "HEAD"}[i%4]
				r.Header = http.Header{"Origin": {"http://o.example"}, "X-Canary": {"always"}, "X-Original-Method": {"GET"}}
				client := plain
				if r.HTTP2 {
					client = secure
				}
				answer, err := g.Try(client, r)
				if err != nil {
					t.Fatal(err)
				}
				if n := requests.Swap(0) + others.Swap(0); n > 0 {
					t.Errorf("%s %s%s: answered %d, and the backend was asked", r.Method, r.Host, path, answer.Status)
				}
			}
		}
	}
}

// Bad values of the check keep all out, or leave the check as it was.
func TestBadValues(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	j := startAuthService(t)
	manifests, requests := counted(t)
	hostile := []string{"a\nb", "a\r\nX: y", `a"b`, "a'b;", "a{b}", "$", "${", "a#b", "/*a*/", "]]a", "a\\", "\u00e9", strings.Repeat("a", 64<<10), "a\x7f", " a b "}
	annotations := []string{
		"auth-method", "auth-signin", "auth-signin-redirect-param", "auth-response-headers", "auth-request-redirect", "auth-cache-key",
		"auth-cache-duration", "auth-always-set-cookie", "auth-proxy-set-headers", "auth-keepalive", "auth-keepalive-requests",
		"auth-keepalive-timeout", "auth-keepalive-share-vars", "enable-global-auth", "auth-url",
	}
	n := 0
	var hosts []string
	for _, annotation := range annotations {
		for _, value := range hostile {
			n++
			host := fmt.Sprintf("h%d.test", n)
			hosts = append(hosts, host)
			if annotation == "auth-url" {
				manifests += j.guarded(host, "/status/403"+value)
			} else {
				manifests += j.guarded(host, "/status/403", annotation+": "+value)
			}
		}
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	for i, host := range hosts {
		r, err := g.Try(client, headgatetest.Request{Host: host})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != 403 && r.Status != 503 && r.Status != 500 || requests.Swap(0) > 0 {
			t.Errorf("%s: %.30q: status %d", annotations[i/len(hostile)], hostile[i%len(hostile)], r.Status)
		}
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

func TestGlobal(t *testing.T) {
	t.Parallel()
	j, own := startAuthService(t), startAuthService(t)
	manifests := app(t) + headgatetest.Service("auth") + headgatetest.Endpoints("auth", j.at) +
		headgatetest.Ingress("a", "a.test", "/", "app") + headgatetest.Ingress("out", "out.test", "/", "app", "enable-global-auth: false") +
		headgatetest.Ingress("bad", "bad.test", "/", "app", "enable-global-auth: maybe") + own.guarded("own.test", "/check") +
		headgatetest.Ingress("acme", "a.test", "/.well-known/acme-challenge", "app")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	status := func(wants map[string]int) {
		t.Helper()
		for host, want := range wants {
			g.Get(host, "/").WantStatus(t, want)
		}
	}
	status(map[string]int{"a.test": 200, "out.test": 200, "bad.test": 200, "own.test": 200})
	j.wantAsked(t, 0)
	g.Apply(headgatetest.Config("global-auth-url: http://" + j.at + "/status/403"))
	status(map[string]int{"a.test": 403, "out.test": 200, "bad.test": 403, "own.test": 200, "unknown.test": 404})
	j.wantAsked(t, 2)
	own.wantAsked(t, 2)
	g.Get("a.test", "/.well-known/acme-challenge/x").WantStatus(t, 200)
	g.Apply(headgatetest.Config("global-auth-url: http://auth.default.svc/cookie", "global-auth-signin: https://login.example/", "global-auth-response-headers: X-User", "no-auth-locations: /other"))
	r := g.Get("a.test", "/x").WantStatus(t, 302)
	if got := r.Header.Get("Location"); got != "https://login.example/?rd=http://a.test%2Fx" {
		t.Errorf("redirected to %q", got)
	}
	g.Get("a.test", "/.well-known/acme-challenge/x").WantStatus(t, 302)
	r = g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"Cookie": {"session=ok"}, "X-User": {"spoof"}}}).WantStatus(t, 200)
	if got := r.Echo.Header.Get("X-User"); got != "alice" {
		t.Errorf("the backend got %q", got)
	}
	// A bad value opens nothing.
	for _, bad := range []string{"auth.example", "http://{x}/", "https://$http_x/", "ftp://a.b/"} {
		g.Apply(headgatetest.Config("global-auth-url: " + bad))
		status(map[string]int{"a.test": 503, "out.test": 200, "bad.test": 503, "own.test": 200})
	}
	g.Apply(headgatetest.Config("global-auth-url: http://"+j.at+"/check", "global-auth-method: FETCH"))
	status(map[string]int{"a.test": 503, "out.test": 200})
	g.Apply(headgatetest.Config("global-auth-url: http://$host/cookie", "ssl-redirect: false"))
	status(map[string]int{"a.test": 503, "out.test": 200})
	g.Apply(headgatetest.Ingress("sso", "a.test", "/cookie", "auth", "enable-global-auth: false"))
	status(map[string]int{"a.test": 401})
	g.Delete(headgatetest.Config())
	status(map[string]int{"a.test": 200})
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

func TestNoAuthLocations(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	at := func(name, host, path string, more ...string) string {
		return headgatetest.Ingress(name, host, path, "app", append([]string{"auth-url: http://" + j.at + "/status/403"}, more...)...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + headgatetest.Config("no-auth-locations: /.well-known/acme-challenge,/open") +
		at("root", "a.test", "/") + at("acme", "a.test", "/.well-known/acme-challenge") + at("open", "a.test", "/open/x") +
		at("pattern", "pattern.test", "/open/(.*)", "use-regex: true", "rewrite-target: /$1") + at("pattern-all", "pattern.test", "/open|/", "use-regex: true") +
		at("pattern-open", "pattern.test", "/open-door", "use-regex: true"),
	})
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"a.test", "/.well-known/acme-challenge/x", 200},
		{"a.test", "/.well-known/acme-challenge", 200},
		{"a.test", "/open/x/y", 200},
		{"a.test", "/open", 403}, // its route is /, which is guarded
		{"a.test", "/open/y", 403},
		{"a.test", "/.well-known/acme-challenge-x", 403},
		{"a.test", "/.well-known/acme-challenge/../../x", 403},
		{"a.test", "/.well-known/acme-challenge/%2e%2e/%2e%2e/x", 403},
		{"a.test", "/.well-known/acme-challenge%2f..%2f..%2fx", 403},
		{"a.test", "/OPEN/x", 403},
		{"a.test", "/open%2fx", 200}, // the same path
		{"a.test", "//open/x", 200},
		{"a.test", "/x?/open/x", 403},
		{"a.test", "/x#/open/x", 403},
		{"pattern.test", "/open-door/x", 200},
		{"pattern.test", "/open/secret", 403},
		{"pattern.test", "/x", 403},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			g.Do(headgatetest.Request{Host: c.host, Path: c.path, Scheme: scheme, HTTP2: http2}).WantStatus(t, c.want)
		})
	}
}

// stub is a feature whose policies do nothing, say yes, or break.
func stub() feature.Feature {
	says := feature.Setting[string]{Annotation: "stub", Parse: func(text string) (string, error) { return text, nil }}
	return feature.Feature{
		Name: "stub", Settings: []feature.AnySetting{says},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if text := says.Get(v); text != "" {
				feature.Add(out.Route, "stub", text)
			}
		},
		Lua: featuretest.Module("stub", `
local _M = {}
local function stub(policy)
    if policy == "ok" then return ngx.exit(ngx.OK) end
    if policy == "declined" then return ngx.exit(ngx.DECLINED) end
    if policy == "break" then error("broken") end
    return true
end
_M.access, _M.auth_passed, _M.rewrite = stub, stub, function(policy) if policy == "break" then error("broken") end end
return _M
`),
	}
}

// Other policies add to what refuses, and take nothing away: neither those that
// do nothing, nor those that say yes, nor those that break. Global is what
// guards a host without a guard of its own.
func TestOthersGrantNothing(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	manifests, requests := counted(t)
	manifests += "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n" +
		headgatetest.Config("global-auth-url: http://"+j.at+"/status/403")
	wants := map[string]int{}
	for _, value := range []string{"return", "ok", "declined", "break"} {
		// 3m is between two steps, so that the profile has an access phase.
		more := []string{"stub: " + value, "proxy-body-size: 3m"}
		guarded := func(guard string, status int, annotations ...string) {
			host := fmt.Sprintf("%s-%s%d.test", value, guard, status)
			manifests += headgatetest.Ingress(strings.TrimSuffix(host, ".test"), host, "/", "app", append(annotations, more...)...)
			wants[host] = status
			if value == "break" {
				wants[host] = 500
			}
		}
		for _, status := range []int{401, 403, 500} {
			guarded("url", status, fmt.Sprintf("auth-url: http://%s/status/%d", j.at, status))
		}
		guarded("global", 403)
		guarded("basic", 401, "auth-type: basic", "auth-secret: users", "enable-global-auth: false")
		// Only who guards keeps these out.
		guarded("open", 200, "enable-global-auth: false")
	}
	for _, features := range [][]feature.Feature{append(all.Features(), stub()), append([]feature.Feature{stub()}, all.Features()...)} {
		g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests, Features: features})
		for host, want := range wants {
			headgatetest.EveryProtocol(func(http2 bool, scheme string) {
				if r := g.Do(headgatetest.Request{Host: host, Scheme: scheme, HTTP2: http2}); r.Status != want {
					t.Errorf("%s, %s: %d, want %d", host, r.Proto, r.Status, want)
				}
				if n := requests.Swap(0); (n > 0) != (want == 200) {
					t.Errorf("%s: the backend was asked %d times", host, n)
				}
			})
		}
	}
}
