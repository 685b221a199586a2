package canary_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// session asks for "/" of a host and returns the backend that answers, and the cookie that it
// sets, empty for none.
func session(t *testing.T, g *headgatetest.Instance, host, cookie string, header ...string) (backend, set string) {
	t.Helper()
	r := headgatetest.Request{Host: host, Header: http.Header{}}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	for _, h := range header {
		r.Header.Set("X-Canary", h)
	}
	response := g.Do(r).WantStatus(t, 200)
	set, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return response.Echo.Backend, set
}

// A session stays at the backend where it is, independent of a canary's header and weight. It stays at the endpoint there too.
func TestSessionsStay(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const affinity, byHeader = "affinity: cookie", "canary-by-header: X-Canary"
	several := headgatetest.Service("several") + headgatetest.Endpoints("several", headgatetest.StartEcho(t, "one"), headgatetest.StartEcho(t, "two"), headgatetest.StartEcho(t, "three"))
	for _, mode := range []string{"affinity-mode: balanced", "affinity-mode: persistent"} {
		g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "main") + several + headgatetest.Service("down") + headgatetest.Endpoints("down") +
			headgatetest.Ingress("web", "web.test", "/", "main", affinity, mode, "session-cookie-name: s") + offer("web-1", "web.test", "several", byHeader),
		})
		at, onCanary := session(t, g, "web.test", "", "always")
		if at == "main" || !strings.HasPrefix(onCanary, "s=") {
			t.Fatalf("%s: the header leads to %s, which sets %q", mode, at, onCanary)
		}
		main, onMain := session(t, g, "web.test", "")
		if main != "main" || !strings.HasPrefix(onMain, "s=") || onMain[strings.Index(onMain, "|"):] == onCanary[strings.Index(onCanary, "|"):] {
			t.Fatalf("%s: without a header %s answers, and sets %q, the canary %q", mode, main, onMain, onCanary)
		}
		stay := func(when string) {
			t.Helper()
			for range 5 {
				for _, header := range []string{"", "always", "never"} {
					if to, set := session(t, g, "web.test", onCanary, header); to != at || set != "" {
						t.Errorf("%s, %s: the canary's session with the header %q is at %s, not %s, which sets %q", mode, when, header, to, at, set)
					}
					if to, set := session(t, g, "web.test", onMain, header); to != "main" || set != "" {
						t.Errorf("%s, %s: the session with the header %q is at %s, which sets %q", mode, when, header, to, set)
					}
				}
			}
		}
		stay("by header")
		g.Apply(offer("web-1", "web.test", "several", "canary-weight: 100"))
		stay("weight 100")
		g.Apply(offer("web-1", "web.test", "several", "canary-weight: 0"))
		stay("weight 0")

		// A canary without endpoints has no sessions.
		g.Apply(offer("web-1", "web.test", "down", byHeader))
		if to, _ := session(t, g, "web.test", onCanary, "always"); to != "main" {
			t.Errorf("%s: with a canary that is down, %s answers", mode, to)
		}
		g.Apply(offer("web-1", "web.test", "several", byHeader))
		// A change of the cookie's name, or of the canary's endpoints, is followed.
		g.Apply(headgatetest.Ingress("web", "web.test", "/", "main", affinity, mode, "session-cookie-name: other"))
		if _, set := session(t, g, "web.test", onCanary, "always"); !strings.HasPrefix(set, "other=") {
			t.Errorf("%s: with another name, the canary sets %q", mode, set)
		}
		g.Delete(several[strings.Index(several, "---\nkind: EndpointSlice"):])
		g.Apply(headgatetest.Endpoints("several", headgatetest.StartEcho(t, "new")) + headgatetest.Ingress("web", "web.test", "/", "main", affinity, mode, "session-cookie-name: s"))
		if to, _ := session(t, g, "web.test", onCanary); to != "new" {
			t.Errorf("%s: with other endpoints, the canary's session is at %s", mode, to)
		}
		// Without a session, nothing changes for requests.
		g.Apply(headgatetest.Ingress("web", "web.test", "/", "main"))
		if to, set := session(t, g, "web.test", onCanary); to != "main" || set != "" {
			t.Errorf("%s: without affinity, %s answers, which sets %q", mode, to, set)
		}
	}
}

// A canary with the legacy behavior keeps no sessions, also beside one that does. A session at
// the route's own backend stays there.
func TestLegacySessions(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "main") + backend(t, "one") + backend(t, "two") +
		headgatetest.Ingress("web", "web.test", "/", "main", "affinity: cookie") +
		offer("web-1", "web.test", "one", "canary-by-header: X-Canary", "canary-by-header-value: one", "affinity-canary-behavior: legacy") +
		offer("web-2", "web.test", "two", "canary-by-header: X-Canary", "canary-by-header-value: two"),
	})
	if at, set := session(t, g, "web.test", "", "one"); at != "one" || set != "" {
		t.Errorf("%s answers, and sets %q", at, set)
	}
	_, onMain := session(t, g, "web.test", "")
	if at, set := session(t, g, "web.test", onMain, "one"); at != "main" || set != "" {
		t.Errorf("the session is at %s, which sets %q", at, set)
	}
	at, onTwo := session(t, g, "web.test", "", "two")
	if at != "two" || onTwo == "" {
		t.Fatalf("%s answers, and sets %q", at, onTwo)
	}
	if at, set := session(t, g, "web.test", onTwo, "one"); at != "two" || set != "" {
		t.Errorf("the session is at %s, which sets %q", at, set)
	}
}
