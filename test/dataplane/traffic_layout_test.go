package dataplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// otherLayouts reads each request as if NGINX had other structures, too: in a copy of
// traffic_request.lua, the place of each pointer is another one. It logs what the copies that do
// not read memory any more say.
func otherLayouts() []feature.Feature {
	return append(all.Features(), feature.Feature{
		Name:      "layouts",
		Resources: resource.Resources{Log: []resource.Handler{resource.NewHandler("headgate.feature.layouts", "log")}},
		Lua: featuretest.Module("layouts", `
local _M = {}
local get_request = require("resty.core.base").get_request
local file = io.open(package.searchpath("headgate.traffic_request", package.path))
local source = file:read("*a")
file:close()
local readers, real = {}, require "headgate.traffic_request"
local function add(from, to)
    local text = string.gsub(source, from, to)
    assert(text ~= source)
    readers[#readers + 1] = assert(loadstring((string.gsub(text, "hg_traffic_", "layout_" .. #readers .. "_"))))()
end
for i = 0, 64 do
    if i ~= 8 then
        add("others%[8%]", "others[" .. i .. "]")
    end
    add("(uint32_t signature;)", "%1 void *more[" .. i + 1 .. "];")
end
function _M.log()
    local r = get_request()
    local want = table.concat({ real.read(r) }, " ")
    for i, reader in ipairs(readers) do
        local got = table.concat({ reader.read(r) }, " ")
        if got ~= want then
            require("headgate.log").err("layout ", i, ": ", got, " instead of ", want)
        end
    end
end
return _M`),
	})
}

// A worker of an NGINX with other structures than those that are known reads the variables, and
// does not die of pointers that are none.
func TestOtherLayoutsAreNotRead(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 1, Traffic: headgatetest.Traffic(), Features: otherLayouts(), Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("web", "a.test", "/", "one") +
			headgatetest.Ingress("moved", "moved.test", "/", "one", "permanent-redirect: http://x.test/"),
	})
	for i := range 40 {
		g.Get("moved.test", "/").WantStatus(t, http.StatusMovedPermanently)
		g.Get("a.test", fmt.Sprintf("/%d", i)).WantStatus(t, http.StatusOK)
	}
	headgatetest.Eventually(t, "workers that do not read memory", func() bool {
		return strings.Contains(g.Log.String(), "memory is not as expected")
	})
	for _, line := range []string{"layout ", "exited on signal"} {
		if text := g.Log.String(); strings.Contains(text, line) {
			t.Errorf("the log has %q:\n%s", line, text)
		}
	}
}
