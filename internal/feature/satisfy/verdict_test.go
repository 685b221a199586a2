package satisfy_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// stub is an authenticator whose verdict is the value of the annotation stub.
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
local requests = require "headgate.request"
local says = {
    ["true"] = function() return true end,
    ["nothing"] = function() end,
    ["false"] = function() return false end,
    ["word"] = function() return "true" end,
    ["ask"] = function() return "ask" end,
    ["status"] = function() return 200 end,
    ["payment"] = function() return 402 end,
    ["zero"] = function() return ngx.OK end,
    ["table"] = function() return {} end,
    ["neutral"] = function() return "neutral" end,
    ["break"] = function() error("broken") end,
    ["unavailable"] = function(request) return requests.finish(request, 503) end,
    ["unauthorized"] = function() return 401, "Stub" end,
    ["silent"] = function() return 401 end,
    ["forbidden"] = function() return 403 end,
}
return { authenticate = function(policy, request) return says[policy](request) end }
`),
	}
}

// An invalid verdict lets no client in, and a refusal does not remove another
// one's challenge.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	manifests, b := startBackend(t)
	// The statuses without a password and with one, where any counts and where all do.
	wants := map[string]struct{ anyOpen, anyLogin, allOpen, allLogin int }{
		"true":         {200, 200, 401, 200},
		"neutral":      {401, 200, 401, 200},
		"unauthorized": {401, 200, 401, 401},
		"silent":       {401, 200, 401, 401},
		"forbidden":    {401, 200, 0, 403}, // who is asked first decides where all count
		"unavailable":  {503, 503, 0, 503},
	}
	for _, bad := range []string{"nothing", "false", "word", "ask", "status", "payment", "zero", "table", "break"} {
		wants[bad] = struct{ anyOpen, anyLogin, allOpen, allLogin int }{500, 500, 0, 500}
	}
	for says := range wants {
		for _, satisfy := range []string{"any", "all"} {
			manifests += headgatetest.Ingress(says+"-"+satisfy, says+"-"+satisfy+".test", "/", "app", append(basic, "satisfy: "+satisfy, "stub: "+says)...)
		}
		manifests += headgatetest.Ingress(says, says+".test", "/", "app", "stub: "+says, "satisfy: any")
	}
	for _, first := range []bool{true, false} {
		features := append(all.Features(), stub())
		if first {
			features = append([]feature.Feature{stub()}, all.Features()...)
		}
		g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests, Features: features})
		ask := func(host, what string, want int, header http.Header) {
			everyProtocol(func(http2 bool, scheme string) {
				r := g.Do(headgatetest.Request{Host: host, Scheme: scheme, HTTP2: http2, Header: header})
				if r.Status != want {
					t.Errorf("%s, first %v, HTTP/2 %v, %s: status %d, want %d", host, first, http2, what, r.Status, want)
				}
				if n := b.requests.Swap(0); (n > 0) != (want == 200) {
					t.Errorf("%s, first %v, HTTP/2 %v, %s: the backend was asked %d times", host, first, http2, what, n)
				}
			})
		}
		login := http.Header{"Authorization": {password}}
		for says, want := range wants {
			if !first && want.anyLogin > 401 {
				want.anyLogin = 200 // the verdict of the other one is not needed
			}
			if want.allOpen == 0 {
				want.allOpen = 401
				if first {
					want.allOpen = want.allLogin
				}
			}
			ask(says+"-any.test", "without a password", want.anyOpen, nil)
			ask(says+"-any.test", "with a password", want.anyLogin, login)
			ask(says+"-all.test", "without a password", want.allOpen, nil)
			ask(says+"-all.test", "with a password", want.allLogin, login)
			alone := want.allLogin
			ask(says+".test", "alone", alone, nil)
		}
		for host, want := range map[string][]string{
			"unauthorized-any.test": {challenge, "Stub"}, "silent-any.test": {challenge}, "forbidden-any.test": {challenge}, "unauthorized.test": {"Stub"},
		} {
			r := g.Get(host, "/")
			slices.Sort(want)
			wantChallenges(t, fmt.Sprintf("%s, first %v", host, first), r, want...)
		}
	}
}
