package externalauth_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// startAnswering runs an auth service that explains its refusals. /turns refuses every second request.
func startAnswering(t *testing.T) (at string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		status := map[string]int{"/401": 401, "/403": 403, "/turns": 401, "/ok": 200}[r.URL.Path]
		if r.URL.Path == "/turns" && n%2 == 0 {
			status = 200
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "flow=1")
		if status == 401 {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"why":%d}`, status)
	})), asked
}

// A client that the service denies gets its response, however the verdict came about.
func TestPassResponse(t *testing.T) {
	t.Parallel()
	at, asked := startAnswering(t)
	guarded := func(name, path string, annotations ...string) string {
		return guardedBy(name, "http://"+at+path, append(annotations, "ssl-redirect: false")...)
	}
	const pass = "auth-pass-response: true"
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: app(t) +
		guarded("plain", "/401") + guarded("login", "/401", pass) + guarded("role", "/403", pass) + guarded("in", "/ok", pass) +
		guarded("kept", "/403", pass, "auth-cache-key: $host", "auth-cache-duration: 403 1h") + guarded("turns", "/turns", pass) +
		guarded("page", "/401", pass, "auth-signin: https://login.example.test/")})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, method := range []string{"GET", "POST"} {
			get := func(host string) headgatetest.Response {
				r := headgatetest.Request{Method: method, Host: host, Scheme: scheme, HTTP2: http2}
				if method == "POST" {
					r.Body = strings.NewReader(strings.Repeat("x", 200<<10))
				}
				return g.Do(r)
			}
			for host, status := range map[string]int{"login.test": 401, "role.test": 403, "kept.test": 403} {
				r := get(host)
				r.WantStatus(t, status)
				if want := fmt.Sprintf(`{"why":%d}`, status); r.Body != want || r.Header.Get("Content-Type") != "application/json" || len(r.Header["Set-Cookie"]) != 1 {
					t.Errorf("%s by %s: %q, %v, want %s", host, r.Proto, r.Body, r.Header, want)
				}
				if challenges := r.Header["Www-Authenticate"]; len(challenges) > 1 || len(challenges) == 1 != (status == 401) {
					t.Errorf("%s by %s: %q", host, r.Proto, challenges)
				}
			}
			// If it says something else when it is asked for its response, the client stays out.
			asked.Store(0)
			if r := get("turns.test"); r.Status != 401 || r.Body != `{"why":200}` || asked.Load() != 2 {
				t.Errorf("by %s: %d %s, asked %d times", r.Proto, r.Status, r.Body, asked.Load())
			}
			if r := get("plain.test"); r.Status != 401 || strings.Contains(r.Body, "why") {
				t.Errorf("without the annotation: %d %s", r.Status, r.Body)
			}
			get("in.test").WantStatus(t, 200)
			get("page.test").WantStatus(t, 302)
		}
	})
	if n := g.State().Kept; n != 0 {
		t.Errorf("%d requests are kept", n)
	}
}
