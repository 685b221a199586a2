package dataplane_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// picking is a feature whose picker goes through the endpoints from the first
// one for each request, and notes the outcomes.
func picking() feature.Feature {
	start := feature.Setting[int]{Annotation: "start", Parse: feature.Int(0, 9), Scope: feature.ScopeBackend, Merge: feature.MergeOwner}
	return feature.Feature{
		Name: "picking", Settings: []feature.AnySetting{start},
		Backend: func(v feature.Values, out *feature.BackendOut) {
			if n := start.Get(v); n > 0 {
				out.Balancing.Picker = model.Policy{Feature: "picking", Value: n}
			}
		},
		Route: func(_ feature.Values, out *feature.RouteOut) {
			if out.Route.Origin.Ingress == "plain" {
				feature.Add(out.Route, "picking", struct{}{})
				out.Route.Variant.HeaderFilter = true
			}
		},
		Lua: featuretest.Modules(map[string]string{
			"picking": `
local picker = require "headgate.feature.picking.picker"
return {
    header_filter = function()
        ngx.header["X-Outcomes"] = table.concat(picker.outcomes, " ") .. ", made " .. picker.made
    end,
}`,
			"picker": `
local _M = { outcomes = {}, made = 0 }
local outcomes = _M.outcomes
local meta = { __index = {
    pick = function(self, _, tried)
        local index = self.start
        while tried and tried[index] do
            index = index % self.backend.count + 1
        end
        return index
    end,
    done = function(_, index, status, _, response)
        outcomes[#outcomes + 1] = index .. "=" .. tostring(status) .. (response and "" or "?")
    end,
} }
function _M.new(settings, backend, before)
    _M.made = _M.made + 1
    if before then
        before.backend, before.start = backend, settings
        return before
    end
    return setmetatable({ start = settings, backend = backend }, meta)
end
return _M`,
		}),
	}
}

// The settings of a backend choose its picker, which names the endpoint of each
// try and hears of each outcome. Backends with other settings are unaffected.
func TestPickersAreChosenByBackends(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: append(all.Features(), picking()), Timing: headgatetest.Hasty(), Manifests: served("picked", headgatetest.StartEcho(t, "a"), headgatetest.StartEcho(t, "b")) +
		headgatetest.Service("half") + headgatetest.Endpoints("half", "127.0.0.1:1", headgatetest.StartEcho(t, "alive")) + served("plain", headgatetest.StartEcho(t, "plain")) +
		headgatetest.Ingress("picked", "picked.test", "/", "picked", "start: 2") + headgatetest.Ingress("half", "half.test", "/", "half", "start: 1") +
		headgatetest.Ingress("plain", "plain.test", "/", "plain")})
	first := g.Get("picked.test", "/").WantStatus(t, 200).Echo.Backend
	for range 3 {
		if again := g.Get("picked.test", "/").WantStatus(t, 200).Echo.Backend; again != first {
			t.Errorf("backend %s, and %s before", again, first)
		}
	}
	g.Get("half.test", "/").WantStatus(t, 200)
	if kept := g.State().Kept; kept != 0 {
		t.Errorf("%d requests are kept", kept)
	}
	// Another setting changes what is picked, and the picker goes on.
	g.Apply(headgatetest.Ingress("picked", "picked.test", "/", "picked", "start: 1"))
	if other := g.Get("picked.test", "/").WantStatus(t, 200).Echo.Backend; other == first {
		t.Errorf("still backend %s", first)
	}
	if said := g.Get("plain.test", "/").WantStatus(t, 200).Header.Get("X-Outcomes"); said != "2=200 2=200 2=200 2=200 1=502 2=200 1=200, made 3" {
		t.Errorf("the outcomes are %q", said)
	}
}
