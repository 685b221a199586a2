package dataplane_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/featuretest"
	"github.com/headgate/headgate/internal/headgatetest"
)

// A worker forgets what was not used for longest, and not all of it over one
// unit that is larger than half of what it may hold.
func TestWhatWorkersForget(t *testing.T) {
	t.Parallel()
	holding := append(all.Features(), feature.Feature{
		Name:  "holding",
		Route: func(_ feature.Values, out *feature.RouteOut) { feature.Add(out.Route, "holding", struct{}{}) },
		Lua: featuretest.Module("holding", `
local cache = require "headgate.cache"
return {
    rewrite = function(_, request)
        local held = cache.new(100)
        for step in string.gmatch(ngx.unescape_uri(ngx.var.args), "%S+") do
            local name, bytes = string.match(step, "^(%a)(%d*)$")
            if bytes == "" then
                held:get(name)
            else
                held:put(name, { bytes = tonumber(bytes) })
            end
        end
        local bytes, count = held:usage()
        local names = ""
        for name in string.gmatch("abcdefgxy", ".") do
            names = names .. ((held.young[name] or held.old[name] or held.large_name == name) and name or "")
        end
        ngx.header["X-Held"] = names .. " " .. count .. " " .. bytes
        return require("headgate.request").finish(request, 204)
    end,
}`),
	})
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: holding, Manifests: served("one") + headgatetest.Ingress("a", "a.test", "/", "one")})
	for steps, want := range map[string]string{
		"a20 b20":                     "ab 2 40",
		"a20 b20 c20 d20":             "abcd 4 80",
		"a20 b20 c20 d20 e20":         "cde 3 60",
		"a20 b20 c20 a d20":           "acd 3 60",
		"a20 a30":                     "a 1 30",
		"a20 b20 x60 c20":             "abcx 4 120",
		"a20 x60 b20 y70 c20 x60 d20": "abcdx 5 140",
		"x60 x10 a20":                 "ax 2 30",
		"x10 a20 x60":                 "ax 2 80",
	} {
		r := g.Get("a.test", "/?"+strings.ReplaceAll(steps, " ", "+")).WantStatus(t, 204)
		if got := r.Header.Get("X-Held"); got != want {
			t.Errorf("after %s it holds %s, want %s", steps, got, want)
		}
	}
}
