package externalauth_test

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func TestCache(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	two := headgatetest.Ingress("two", "two.test", "/one", "app", "auth-url: http://"+j.at+"/check", "auth-cache-key: fixed") +
		headgatetest.Ingress("more", "two.test", "/two", "app", "auth-url: http://"+j.at+"/check", "auth-cache-key: fixed")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + two +
		j.guarded("k.test", "/check", "auth-cache-key: $cookie_k") +
		j.guarded("pair.test", "/check", "auth-cache-key: $http_a$http_b") +
		j.guarded("no401.test", "/status/401", "auth-cache-key: x", "auth-cache-duration: 200 5m") +
		j.guarded("s401.test", "/status/401", "auth-cache-key: x") +
		j.guarded("s403.test", "/status/403", "auth-cache-key: x") +
		j.guarded("any403.test", "/status/403", "auth-cache-key: x", "auth-cache-duration: any 5m") +
		j.guarded("any500.test", "/status/500", "auth-cache-key: x", "auth-cache-duration: any 5m") +
		j.guarded("short.test", "/check", "auth-cache-key: x", "auth-cache-duration: 200 1s") +
		j.guarded("*.wild.test", "/check", "auth-cache-key: x"),
	})
	get := func(host, path string, header http.Header, want, asked int) {
		t.Helper()
		g.Do(headgatetest.Request{Host: host, Path: path, Header: header}).WantStatus(t, want)
		j.wantAsked(t, asked)
	}
	cookie := func(value string) http.Header { return http.Header{"Cookie": {"k=" + value}} }
	get("k.test", "/x", cookie("1"), 200, 1)
	get("k.test", "/x", cookie("1"), 200, 0)
	get("k.test", "/y", cookie("1"), 200, 0)
	get("k.test", "/x", cookie("2"), 200, 1)
	// Other routes, hosts and names share nothing.
	get("two.test", "/one", nil, 200, 1)
	get("two.test", "/one", nil, 200, 0)
	get("two.test", "/one/x", nil, 200, 1)
	get("two.test", "/one/y", nil, 200, 0)
	get("two.test", "/two", nil, 200, 1)
	get("a.wild.test", "/", nil, 200, 1)
	get("b.wild.test", "/", nil, 200, 1)
	get("a.wild.test", "/", nil, 200, 0)
	// Neither do keys of which one only looks like the other.
	get("pair.test", "/", http.Header{"A": {"xy"}, "B": {"z"}}, 200, 1)
	get("pair.test", "/", http.Header{"A": {"x"}, "B": {"yz"}}, 200, 1)
	// Refusals are kept as long as the durations say; failures are not kept.
	get("s401.test", "/", nil, 401, 1)
	get("s401.test", "/", nil, 401, 0)
	get("no401.test", "/", nil, 401, 1)
	get("no401.test", "/", nil, 401, 1)
	get("s403.test", "/", nil, 403, 1)
	get("s403.test", "/", nil, 403, 1)
	get("any403.test", "/", nil, 403, 1)
	get("any403.test", "/", nil, 403, 0)
	get("any500.test", "/", nil, 500, 1)
	get("any500.test", "/", nil, 500, 1)
	// The headers of the service's answer have precedence, and cookies are not
	// shared between clients.
	withAnswer := func(key, says string) http.Header { return http.Header{"Cookie": {"k=" + key}, "Answer": {says}} }
	for key, says := range map[string]string{
		"a": "Cache-Control: no-store", "b": "Cache-Control: max-age=0", "c": "Set-Cookie: s=1", "d": "Vary: Cookie",
		"e": "Expires: Thu, 01 Jan 1970 00:00:01 GMT", "f": "Cache-Control: private, max-age=60", "g": "Expires: 0",
	} {
		get("k.test", "/", withAnswer(key, says), 200, 1)
		get("k.test", "/", withAnswer(key, says), 200, 1)
	}
	get("no401.test", "/", withAnswer("", "Cache-Control: max-age=60"), 401, 1)
	get("no401.test", "/", nil, 401, 0)

	get("short.test", "/", nil, 200, 1)
	headgatetest.Eventually(t, "what was remembered for a second is forgotten", func() bool {
		g.Get("short.test", "/").WantStatus(t, 200)
		return len(j.take()) > 0
	})
}

// A change of what the policy says is a change of what was asked.
func TestCacheAfterAChange(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + j.guarded("a.test", "/check", "auth-cache-key: x")})
	g.Get("a.test", "/").WantStatus(t, 200)
	g.Get("a.test", "/").WantStatus(t, 200)
	j.wantAsked(t, 1)
	for _, change := range []string{
		j.guarded("a.test", "/status/403", "auth-cache-key: x"),
		j.guarded("a.test", "/status/403", "auth-cache-key: x", "auth-method: POST"),
		j.guarded("a.test", "/status/403", "auth-cache-key: x", "auth-cache-duration: 403 5m"),
	} {
		g.Apply(change)
		g.Get("a.test", "/").WantStatus(t, 403)
		j.wantAsked(t, 1)
	}
	g.Apply(j.guarded("a.test", "/check"))
	g.Get("a.test", "/").WantStatus(t, 200)
	g.Get("a.test", "/").WantStatus(t, 200)
	j.wantAsked(t, 2)
	// As it was: what was said then may be said again.
	g.Apply(j.guarded("a.test", "/check", "auth-cache-key: x"))
	g.Get("a.test", "/").WantStatus(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}
