package balancing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// simulation is Lua that has the picker of ewma, in several workers, choose among four endpoints
// for a minute of its own clock: what comes of it does not depend on the machine. Requests
// come at random. Endpoints take 15 ms and exponentially distributed 5 ms in the mean, and for one
// request of a hundred 30 ms more in the mean; the first endpoint takes as many times that as a
// header says.
const simulation = `
local cjson = require "cjson.safe"
local requests = require "headgate.request"

local NAME = "headgate.feature.balancing.ewma"
local now = 0
local own_now, own_module = ngx.now, package.loaded[NAME]
ngx.now = function() return now end
package.loaded[NAME] = nil
local ewma = require(NAME)
ngx.now, package.loaded[NAME] = own_now, own_module

local WORKERS, TICKS = 4, 60000

local function simulate(factor, status)
    now = 0
    local backend = require("headgate.backend").compile({ endpoints = { "10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1" } }, "a")
    local pickers, ends, times, asked = {}, {}, {}, { 0, 0, 0, 0 }
    for w = 1, WORKERS do
        pickers[w] = ewma.new(nil, backend)
    end
    local function ask(picker, tick)
        local index = picker:pick()
        local took = 15 - 5 * math.log(1 - math.random())
        if math.random() < 0.01 then
            took = took - 30 * math.log(1 - math.random())
        end
        if index == 1 then
            took = took * factor
        end
        took = math.ceil(took)
        asked[index], times[#times + 1] = asked[index] + 1, took
        local list = ends[tick + took] or {}
        ends[tick + took] = list
        list[#list + 1] = { picker, index, took / 1000 }
    end
    for tick = 1, TICKS do
        now = tick / 1000
        for _, one in ipairs(ends[tick] or {}) do
            one[1]:done(one[2], one[2] == 1 and status or 200, 0, one[3])
        end
        ends[tick] = nil
        for w = 1, WORKERS do
            if math.random() < 1 / 12 then
                ask(pickers[w], tick)
            end
        end
    end
    table.sort(times)
    return { asked = asked, p99 = times[math.ceil(0.99 * #times)], requests = #times }
end

return { rewrite = function(_, request)
    local header = ngx.req.get_headers()
    ngx.header["X-Outcome"] = cjson.encode(simulate(tonumber(header["X-Factor"]), tonumber(header["X-Status"])))
    return requests.finish(request, 204)
end }`

type outcome struct {
	Asked         []int
	P99, Requests int
}

func startSimulation(t *testing.T) (simulate func(factor float64, status int) outcome) {
	const name = "simulation"
	f := feature.Feature{
		Name: name, Settings: []feature.AnySetting{feature.Setting[bool]{Annotation: name, Parse: feature.Bool}},
		Route: func(_ feature.Values, out *feature.RouteOut) { feature.Add(out.Route, name, struct{}{}) },
		Lua:   featuretest.Module(name, simulation),
	}
	g := headgatetest.Start(t, headgatetest.Options{Features: append(all.Features(), f), Workers: 1,
		Manifests: headgatetest.Ingress("web", "web.test", "/", "nothing")})
	return func(factor float64, status int) (o outcome) {
		t.Helper()
		r := g.Do(headgatetest.Request{Host: "web.test", Header: map[string][]string{"X-Factor": {fmt.Sprint(factor)}, "X-Status": {fmt.Sprint(status)}}}).WantStatus(t, 204)
		if err := json.Unmarshal([]byte(r.Header.Get("X-Outcome")), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
}

// With one of four endpoints ten times slower, p99 is at most 1.3 times that without it. One that
// fails fast attracts no requests, nor does one that never responds.
func TestEWMASimulated(t *testing.T) {
	t.Parallel()
	simulate := startSimulation(t)
	even := simulate(1, 200)
	for i, n := range even.Asked {
		// The choice depends on the earlier ones, so that it is not a binomial distribution.
		if share := float64(n) / float64(even.Requests); share < 0.15 || share > 0.35 {
			t.Errorf("of four equal endpoints, number %d has a share of %.2f", i, share)
		}
	}
	for what, o := range map[string]outcome{"ten times slower": simulate(10, 200), "failing fast": simulate(0.05, 500), "silent": simulate(100_000, 200)} {
		t.Logf("%s: %+v, beside %+v", what, o, even)
		if float64(o.P99) > 1.3*float64(even.P99) {
			t.Errorf("with an endpoint that is %s, p99 is %d ms, without it %d ms", what, o.P99, even.P99)
		}
		if o.Asked[0]*100 > o.Requests || o.Asked[0] < workers {
			t.Errorf("an endpoint that is %s got %d of %d requests", what, o.Asked[0], o.Requests)
		}
	}
}

// The same through NGINX, beside another backend without a slow endpoint, at the same time. Times
// are those of timers, but a machine that stalls makes fast endpoints look slow. So the requests
// come in rounds, and one good one is enough: other algorithms give the slow endpoint 3 %
// of the requests of a round, or more, and have none.
func TestEWMA(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const endpoints, each, rounds, normal = 4, 8, 10, 20 * time.Millisecond
	f := newFleet(t, endpoints, workers, "load-balance: ewma")
	var even []string
	for i := range endpoints {
		f.delays[i].Store(int64(normal))
		even = append(even, headgatetest.StartPlain(t, func(*http.Request) (int, string) {
			time.Sleep(normal)
			return 0, ""
		}))
	}
	f.delays[0].Store(int64(10 * normal))
	const evenHost = "even.test"
	f.g.Apply(headgatetest.Service("even") + headgatetest.Endpoints("even", even...) + headgatetest.Ingress("even", evenHost, "/", "even", "load-balance: ewma"))
	clients := map[string]headgatetest.Connections{fleetHost: f.g.Connections(workers, each), evenHost: f.g.Connections(workers, each)}
	// round returns p99 of both, and the share of the slow endpoint.
	round := func(requests int) (slow, without time.Duration, share float64) {
		f.reset()
		times := map[string][]time.Duration{fleetHost: make([]time.Duration, requests), evenHost: make([]time.Duration, requests)}
		var group sync.WaitGroup
		for host, connections := range clients {
			group.Go(func() {
				if err := connections.Each(requests, func(c *headgatetest.Connection, i int) error {
					begun := time.Now()
					_, err := c.Ask(host, "/")
					times[host][i] = time.Since(begun)
					return err
				}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		p99 := func(all []time.Duration) time.Duration {
			slices.Sort(all)
			return all[len(all)*99/100]
		}
		return p99(times[fleetHost]), p99(times[evenHost]), float64(f.shares()[0]) / float64(requests)
	}
	round(500) // until the averages are there
	good := 0
	for range rounds {
		slow, without, share := round(manyRequests / rounds / 2)
		t.Logf("p99 %v, without the slow endpoint %v; its share %.4f", slow, without, share)
		if share < 0.01 && float64(slow) < 1.3*float64(without) {
			good++
		}
	}
	if good == 0 {
		t.Errorf("in none of %d rounds, p99 was 1.3 times that without the slow endpoint, or less, and its share below 1 %%", rounds)
	}
}
