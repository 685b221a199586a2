package dataplane_test

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// calling prepares a second call on all routes but those of the Ingress plain,
// and answers with what became of the request's calls.
func calling() feature.Feature {
	second := model.Call{Name: "second", Host: "second.default.svc", Port: 80}
	type policy struct {
		Call map[string]string `json:"call,omitempty"`
	}
	return feature.Feature{
		Name:  "calling",
		Calls: func(feature.Values) []model.Call { return []model.Call{second} },
		Route: func(_ feature.Values, out *feature.RouteOut) {
			p := policy{}
			if out.Route.Origin.Ingress != "plain" {
				p.Call = map[string]string{"backend": second.Backend()}
			}
			feature.Add(out.Route, "calling", p)
			out.Route.Variant.HeaderFilter = true
		},
		Lua: featuretest.Module("calling", `
local calls = require "headgate.call"
return {
    request_headers = function(policy, request)
        if policy.call then
            assert(calls.prepare(request, "second", policy.call))
        end
    end,
    header_filter = function(_, request)
        local calls = request.calls
        if calls then
            local address, port = calls.second.backend:next()
            ngx.header["X-Second"] = address .. ":" .. port
            ngx.header["X-Check"] = calls.check and calls.check.uri or "none"
        end
    end,
}`),
	}
}

// Each of a request's calls has a backend and a turn of its own, in any order of
// preparation; a request without calls has none.
func TestCallsAreApart(t *testing.T) {
	t.Parallel()
	for name, features := range map[string][]feature.Feature{
		"before the check": append([]feature.Feature{calling()}, all.Features()...),
		"after it":         append(all.Features(), calling()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked [2]atomic.Int32
			var authServices, seconds []string
			for i := range asked {
				authServices = append(authServices, headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked[i].Add(1) })))
				seconds = append(seconds, headgatetest.StartEcho(t, "second"))
			}
			g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: features, Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
				served("auth", authServices...) + served("second", seconds...) +
				headgatetest.Ingress("both", "a.test", "/both", "one", "auth-url: http://auth.default.svc/ask") +
				headgatetest.Ingress("open", "a.test", "/open", "one") + headgatetest.Ingress("plain", "a.test", "/plain", "one")})
			var turns []string
			for range 4 {
				a := g.Get("a.test", "/both").WantStatus(t, 200)
				turns = append(turns, a.Header.Get("X-Second"))
				if a.Header.Get("X-Check") != "/ask" {
					t.Errorf("the check asks for %q", a.Header.Get("X-Check"))
				}
			}
			if turns[0] == turns[1] || !slices.Equal(turns[:2], turns[2:]) || !slices.Contains(seconds, turns[0]) || !slices.Contains(seconds, turns[1]) {
				t.Errorf("the second call goes to %q, want %q by turns", turns, seconds)
			}
			if asked[0].Load() != 2 || asked[1].Load() != 2 {
				t.Errorf("the auth services were asked %d and %d times, want twice each", asked[0].Load(), asked[1].Load())
			}
			if a := g.Get("a.test", "/open").WantStatus(t, 200); a.Header.Get("X-Check") != "none" || !slices.Contains(seconds, a.Header.Get("X-Second")) {
				t.Errorf("without a check: %v", a.Header)
			}
			if a := g.Get("a.test", "/plain").WantStatus(t, 200); a.Header.Get("X-Second") != "" {
				t.Errorf("without calls: %v", a.Header)
			}
		})
	}
}
