package externalauth_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// startAnswering runs an auth service that explains its refusals, with a cookie but for those that may be cached. It counts
// how often it was asked. /turns refuses every second request, and has what only a backend may get.
func startAnswering(t *testing.T) (at string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		status := map[string]int{"401": 401, "403": 403, "turns": 401, "ok": 200}[kind]
		if kind == "turns" && n%2 == 0 {
			status = 200
			w.Header().Set("X-Token", "secret")
		}
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/kept") {
			w.Header().Set("Set-Cookie", "flow=1")
		}
		if status == 401 {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		w.Header().Set("X-Conditional", r.Header.Get("If-None-Match")+r.Header.Get("Range")+r.Header.Get("Upgrade"))
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"why":%d}`, status)
	})), asked
}

// A client that the service denies gets its response, however the verdict came about, and nothing of one that allows.
func TestPassResponse(t *testing.T) {
	t.Parallel()
	const pass, kept = "auth-pass-response: true", "auth-cache-duration: 401 403 1h"
	at, asked := startAnswering(t)
	reached := &atomic.Int64{}
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	var manifests strings.Builder
	guarded := func(name, path string, annotations ...string) {
		manifests.WriteString(guardedBy(name, "http://"+at+path, append(annotations, "ssl-redirect: false")...))
	}
	basic := []string{pass, "satisfy: any", "auth-type: basic", "auth-secret: users"}
	guarded("plain", "/401")
	guarded("login", "/401", pass)
	guarded("role", "/403", pass)
	guarded("in", "/ok", pass)
	guarded("kept", "/403/kept", pass, "auth-cache-key: $host", kept)
	guarded("turns", "/turns", pass, "auth-response-headers: X-Token")
	guarded("page", "/401", pass, "auth-signin: https://login.example.test/")
	guarded("paged", "/401", pass, "custom-http-errors: 401", "default-backend: app")
	guarded("head", "/401", pass, "auth-method: HEAD")
	guarded("any", "/403", basic...)
	guarded("anykept", "/403/kept", append(basic, "auth-cache-key: $host", kept)...)
	guarded("tenant", "/403/$http_x_tenant/kept", pass, "auth-cache-key: $host", kept)
	guarded("snippet", "/401", pass, "auth-snippet: return 403;")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("app") + headgatetest.Endpoints("app", backend) + manifests.String() +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'me:$apr1$x$x'}\n" +
		headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical")})
	const body401, body403 = `{"why":401}`, `{"why":403}`
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			get := func(host string, header http.Header) headgatetest.Response {
				r := headgatetest.Request{Method: method, Host: host + ".test", Scheme: scheme, HTTP2: http2, Header: header}
				if method == "POST" {
					r.Body = strings.NewReader(strings.Repeat("x", 200<<10))
				}
				return g.Do(r)
			}
			for _, c := range []struct {
				host, body string
				status     int
				challenges string
			}{
				{"login", body401, 401, "Bearer"}, {"role", body403, 403, ""}, {"kept", body403, 403, ""}, {"paged", body401, 401, "Bearer"},
				{"any", body403, 401, `Basic realm=""`}, {"anykept", body403, 401, `Basic realm=""`}, {"anykept", body403, 401, `Basic realm=""`},
			} {
				if method == "HEAD" {
					c.body = ""
				}
				r := get(c.host, http.Header{"If-None-Match": {"x"}, "Range": {"bytes=0-1"}})
				r.WantStatus(t, c.status)
				if r.Body != c.body || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Conditional") != "" {
					t.Errorf("%s %s by %s: %q, %v, want %s", method, c.host, r.Proto, r.Body, r.Header, c.body)
				}
				if got := strings.Join(r.Header["Www-Authenticate"], ", "); got != c.challenges {
					t.Errorf("%s %s by %s: %s, want %s", method, c.host, r.Proto, got, c.challenges)
				}
			}
			// If it allows the request when it is asked for its response, the client stays out, and gets nothing else.
			asked.Store(0)
			if r := get("turns", nil); r.Status != 401 || r.Body != "" || r.Header.Get("X-Token") != "" || r.Header.Get("Set-Cookie") != "" || asked.Load() != 2 {
				t.Errorf("%s by %s: %d %s, %v, asked %d times", method, r.Proto, r.Status, r.Body, r.Header, asked.Load())
			}
			asked.Store(0)
			if get("kept", nil).WantStatus(t, 403); asked.Load() != 1 {
				t.Errorf("asked %d times where the verdict is cached", asked.Load())
			}
			get("tenant", http.Header{"X-Tenant": {"one"}}).WantStatus(t, 403)
			asked.Store(0)
			if r := get("tenant", http.Header{"X-Tenant": {".."}}); r.Status != 403 || asked.Load() != 0 {
				t.Errorf("a client leads the call to another path: %d, asked %d times", r.Status, asked.Load())
			}
			for host, status := range map[string]int{"plain": 401, "head": 401, "snippet": 403, "page": 302} {
				if r := get(host, nil); r.Status != status || strings.Contains(r.Body, "why") || method == "GET" && status != 302 && !strings.Contains(r.Body, "<html>") {
					t.Errorf("%s %s: %d %s", method, host, r.Status, r.Body)
				}
			}
			if reached.Load() != 0 {
				t.Errorf("%d requests reached the backend", reached.Load())
			}
			get("in", nil).WantStatus(t, 200)
			reached.Store(0)
		}
	})
	headgatetest.Eventually(t, "no request is kept", func() bool { return g.State().Kept == 0 })
}
