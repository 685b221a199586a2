package ratelimit_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// beside are the features with two more. One has each request counted by Headgate's counters
// and by NGINX's own modules at once, which refuse nothing: the headers X-Ours and X-NGINX say
// what each would have done. The client is the argument of that name.
func beside(zones, limits string, buckets string, connections int) ([]feature.Feature, string) {
	text := func(text string) model.AdminText {
		t, err := model.NewAdminText(text)
		if err != nil {
			panic(err)
		}
		return t
	}
	const name = "beside"
	ours := feature.Feature{
		Name: name,
		Process: func(_ feature.Values, out *feature.ProcessOut) {
			out.Process.Snippets = model.Snippets{
				HTTP:     text(zones),
				Location: text(limits + " limit_req_dry_run on; limit_conn_dry_run on; add_header X-NGINX $limit_req_status/$limit_conn_status;"),
			}
		},
		Route: func(_ feature.Values, out *feature.RouteOut) { feature.Add(out.Route, name, struct{}{}) },
		Lua: featuretest.Module(name, fmt.Sprintf(`
local buckets = require "headgate.feature.rate_limit.buckets"
local connections = require "headgate.feature.rate_limit.connections"
local policy = { id = "Beside/NGINX", buckets = { %s } }
return {
    preaccess = function(_, request)
        local client, room = ngx.var.arg_client, true
        if policy.buckets[1] then
            room = buckets.take(policy, client, "beside")
        end
        if %d > 0 then
            local counted, refused = connections.enter(policy.id .. client, %[2]d, "beside")
            request.beside_counted, room = counted, not refused
        end
        ngx.header["X-Ours"] = room and "PASSED" or "REJECTED"
    end,
    log = function(_, request)
        if request.beside_counted then
            connections.leave(request.beside_counted)
        end
    end,
}`, buckets, connections)),
	}
	show, ingress := headgatetest.ShowsWorker()
	return append(all.Features(), ours, show), ingress
}

// Headgate and NGINX's limit_req and limit_conn count the same 10,000 requests over four
// workers, each at the same time of the same clock, so that neither the machine's speed nor its
// load counts. They must agree but for what workers do at the same moment, which they may do in
// another order: other requests pass then, but no more of them. Over the same time, the same
// number leaks from a client's bucket on both sides, but for one at the end.
func TestAsNGINX(t *testing.T) {
	const workers, requests, percent = 4, 10000, 100
	for name, c := range map[string]struct {
		zones, limits, buckets string
		connections, clients   int
		wait                   time.Duration
	}{
		"requests per second": {
			"limit_req_zone $arg_client zone=one:5m rate=20r/s;", "limit_req zone=one burst=40 nodelay;",
			`{ kind = "s", rate = 20000, burst = 40 }`, 0, 50, 0,
		},
		"without a burst": {
			"limit_req_zone $arg_client zone=one:5m rate=100r/s;", "limit_req zone=one nodelay;",
			`{ kind = "s", rate = 100000, burst = 0 }`, 0, 7, 0,
		},
		"requests per minute": {
			"limit_req_zone $arg_client zone=one:5m rate=500r/m;", "limit_req zone=one burst=50 nodelay;",
			`{ kind = "m", rate = 8333, burst = 50 }`, 0, 20, 0,
		},
		"both": {
			"limit_req_zone $arg_client zone=one:5m rate=50r/s; limit_req_zone $arg_client zone=two:5m rate=1200r/m;",
			"limit_req zone=one burst=5 nodelay; limit_req zone=two burst=60 nodelay;",
			`{ kind = "s", rate = 50000, burst = 5 }, { kind = "m", rate = 20000, burst = 60 }`, 0, 10, 0,
		},
		"connections": {
			"limit_conn_zone $arg_client zone=one:5m;", "limit_conn one 3;", "", 3, 4, 2 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			features, manifests := beside(c.zones, c.limits, c.buckets, c.connections)
			service := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(c.wait) }))
			g := headgatetest.Start(t, headgatetest.Options{Workers: workers, Features: features, Timing: headgatetest.Hasty(), Manifests: manifests +
				headgatetest.Service("a") + headgatetest.Endpoints("a", service) + headgatetest.Ingress("web", "a.test", "/", "a")})
			var ours, nginx, differ atomic.Int64
			err := g.Connections(workers, 4).Each(requests, func(conn *headgatetest.Connection, i int) error {
				response, err := conn.Ask("a.test", fmt.Sprintf("/?client=c%d", i*i%c.clients))
				if err != nil {
					return err
				}
				us, it := response.Header.Get("X-Ours") == "PASSED", !strings.Contains(response.Header.Get("X-NGINX"), "REJECTED_DRY_RUN")
				if us {
					ours.Add(1)
				}
				if it {
					nginx.Add(1)
				}
				if us != it {
					differ.Add(1)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("of %d requests NGINX would pass %d, Headgate %d; of %d they say otherwise", requests, nginx.Load(), ours.Load(), differ.Load())
			bound := nginx.Load()/percent + int64(c.clients)
			if off := ours.Load() - nginx.Load(); max(off, -off) > bound {
				t.Errorf("Headgate would pass %d requests, and NGINX %d; they may differ by %d", ours.Load(), nginx.Load(), bound)
			}
			if passed := nginx.Load(); passed == 0 || passed == requests {
				t.Errorf("NGINX would pass %d of %d requests: that shows nothing", passed, requests)
			}
		})
	}
}
