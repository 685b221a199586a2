package dataplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// A worker forgets what was not used, and of the owners that hold the most: others lose
// nothing.
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
            local name, bytes, owner = string.match(step, "^(%a)(%d*)(%a*)$")
            if bytes == "" then
                held:get(name)
            elseif bytes == "0" then
                held:drop(name)
            else
                held:put(name, {}, tonumber(bytes), owner)
            end
        end
        local bytes, count = held:usage()
        local names = ""
        for name in string.gmatch("abcdefgxy", ".") do
            names = names .. (held.entries[name] and name or "")
        end
        ngx.header["X-Held"] = names .. " " .. count .. " " .. bytes .. " of " .. held.owners
        return require("headgate.request").finish(request, 204)
    end,
}`),
	})
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: holding, Manifests: served("one") + headgatetest.Ingress("a", "a.test", "/", "one")})
	for steps, want := range map[string]string{
		"a20 b20":                       "ab 2 40 of 1",
		"a20 b20 c20 d20 e20":           "abcde 5 100 of 1",
		"a20 b20 c20 d20 e20 a c e f20": "acef 4 80 of 1",
		"a20 a30":                       "a 1 30 of 1",
		"a20x a30y":                     "a 1 30 of 1",
		"a20x b20y a0":                  "b 1 20 of 1",
		"a20x b20y a0 b0":               "0 0 of 0",
		// All were used: some go nevertheless, and not the newest.
		"a60 a d60": "d 1 60 of 1",
		// Each may have 87.5 / 3 bytes, and x what y and z leave.

		"a40x b10y c10z d30x d e30x": "bcde 4 80 of 3",
		// It does not matter who comes last.
		"a30x b30x c30x b c d20y": "bcd 3 80 of 2",
		// The largest shares become equal.
		"a10u b10v c10w x30x y60y": "abcy 4 90 of 4",
		// One that is larger than all is held until there is another.
		"a20v b20w x200x":      "abx 3 240 of 3",
		"a20v b20w x200x c20v": "bc 2 40 of 2",
	} {
		r := g.Get("a.test", "/?"+strings.ReplaceAll(steps, " ", "+")).WantStatus(t, 204)
		if got := r.Header.Get("X-Held"); got != want {
			t.Errorf("after %s it holds %s, want %s", steps, got, want)
		}
	}
}

// Many small units count with what they take beside their bytes.
func TestSmallUnitsCount(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	startControl(t, g)
	const (
		hosts  = 100
		beside = 50
	)
	var units []unit.Change
	want := int64(0)
	for i := range hosts {
		name := fmt.Sprintf("host%d.test", i)
		units = append(units,
			unit.Change{Kind: unit.Host, Name: name, Version: "a1", Payload: []byte(`{"routes":[]}`)},
			unit.Change{Kind: unit.Name, Name: name, Version: "a2", Payload: []byte(`{"host":"` + name + `"}`)})
	}
	push(t, g, units...)
	for _, u := range units {
		want += int64(len("h:")+len(u.Name)+len(u.Payload)) + beside
	}
	wantEcho(t, g.Get("control.test", "/"), "control")
	before := g.State().Cache
	for i := range hosts {
		g.Get(fmt.Sprintf("host%d.test", i), "/").WantStatus(t, 404)
	}
	after := g.State().Cache
	if got := after.Bytes - before.Bytes; got != want || after.Units-before.Units != int64(len(units)) {
		t.Errorf("%d units count %d bytes, want %d and %d", after.Units-before.Units, got, len(units), want)
	}
}
