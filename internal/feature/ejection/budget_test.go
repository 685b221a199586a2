package ejection_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A backend that is down gets hardly more requests than without retries, and one that fails now
// and then is retried as ever.
func TestBudget(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	endpoints := []*counter{newCounter(t), newCounter(t), newCounter(t)}
	addresses := []string{endpoints[0].address, endpoints[1].address, endpoints[2].address}
	tries := func() int {
		n := 0
		for _, e := range endpoints {
			n += int(e.n.Swap(0))
		}
		return n
	}
	const requests = 2000
	for name, c := range map[string]struct {
		annotation string
		low, high  float64
	}{
		"default": {"retry-budget: 20", 1.2, 1.2},
		"off":     {"retry-budget: 100", 3, 3},
		"none":    {"retry-budget: 0", 1, 1},
		"half":    {"retry-budget: 50", 1.5, 1.5},
	} {
		g := start(t, 2, addresses, "proxy-next-upstream: error timeout http_503", c.annotation)
		for _, e := range endpoints {
			e.status.Store(503)
		}
		tries()
		begun := time.Now()
		if statuses := ask(t, g, requests); statuses[503] != requests {
			t.Errorf("%s: the statuses are %v", name, statuses)
		}
		// What is saved for quiet times, and what comes in by time.
		more := 100 + 10*time.Since(begun).Seconds() + 10
		n := float64(tries())
		t.Logf("%s: %d requests, %.0f tries", name, requests, n)
		if n < c.low*requests-10 || n > c.high*requests+more {
			t.Errorf("%s: %.0f tries for %d requests, want × %.1f, and at most %.0f more", name, n, requests, c.high, more)
		}
		if retries := g.State().Retries["default"]; retries != int64(n)-requests {
			t.Errorf("%s: %d retries are counted", name, retries)
		}
		if refused := g.State().Refusals["retry"]["default"]; (refused > 0) != (c.high < 3) {
			t.Errorf("%s: %d requests without a retry", name, refused)
		}
		for _, e := range endpoints[1:] {
			e.status.Store(200)
		}
		tries()
	}
}

// The same if connections are refused: first all tries are free, until the endpoints are known.
func TestBudgetOfRefusedConnections(t *testing.T) {
	t.Parallel()
	endpoints := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
	g := start(t, 2, endpoints)
	const requests = 1000
	begun := time.Now()
	if statuses := ask(t, g, requests); statuses[502] != requests {
		t.Errorf("the statuses are %v", statuses)
	}
	n := 0
	for _, endpoint := range endpoints {
		n += refused(g, endpoint)
	}
	most := 1.2*requests + 100 + 10*time.Since(begun).Seconds() + 20
	t.Logf("%d requests, %d tries", requests, n)
	if n < requests || float64(n) > most {
		t.Errorf("%d tries for %d requests, want at most %.0f", n, requests, most)
	}
}

// A budget that is spent by responses does not keep requests from leaving an endpoint that is
// known to be dead.
func TestBudgetLetsRequestsLeaveDeadEndpoints(t *testing.T) {
	t.Parallel()
	g := start(t, 1, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", headgatetest.StartEcho(t, "a")}, "retry-budget: 0", "ejection-max-share: 1")
	const requests = 500
	// The first one may meet three dead endpoints.
	if statuses := ask(t, g, requests); statuses[200] < requests-1 {
		t.Errorf("the statuses are %v", statuses)
	}
}

// Each key acts at once, on backends without annotations.
func TestKeys(t *testing.T) {
	t.Parallel()
	bad, good := newCounter(t), newCounter(t)
	g := start(t, 1, []string{bad.address, good.address}, "proxy-next-upstream: error http_503")
	reloads := g.Value(g.Metrics.Reloads)
	bad.status.Store(500)
	ask(t, g, 20)
	for _, seconds := range []int64{3600, 1800} {
		g.Apply(headgatetest.Config("ejection: failures", "ejection-failures: 2", "ejection-statuses: 500", "ejection-time: "+strconv.FormatInt(seconds, 10)))
		before := bad.n.Load()
		ask(t, g, 20)
		if n := bad.n.Load() - before; n != 2 {
			t.Errorf("the endpoint that fails got %d of 20 requests, want 2", n)
		}
		if ejected := g.State().Ejected; len(ejected) != 1 || ejected[0].Until-ejected[0].Since != seconds {
			t.Errorf("with an ejection-time of %d: %+v", seconds, ejected)
		}
		// A request has the worker read this.
		g.Apply(headgatetest.Config())
		ask(t, g, 1)
	}

	g.Apply(headgatetest.Endpoints("web", "127.0.0.1:1", "127.0.0.1:2", good.address))
	ask(t, g, 20)
	avoided := func() (n int) {
		for _, one := range g.State().Ejected {
			if one.Avoided {
				n++
			}
		}
		return n
	}
	g.Apply(headgatetest.Config("ejection-max-share: 100"))
	ask(t, g, 1)
	if n := avoided(); n != 2 {
		t.Errorf("with a share of 100 %%, %d endpoints are avoided", n)
	}

	g.Apply(headgatetest.Endpoints("web", bad.address, good.address))
	bad.status.Store(503)
	good.status.Store(503)
	tries := func(keys ...string) int64 {
		g.Apply(headgatetest.Config(keys...))
		before := bad.n.Load() + good.n.Load()
		ask(t, g, 200)
		return bad.n.Load() + good.n.Load() - before
	}
	if n := tries("retry-budget: 100"); n != 600 {
		t.Errorf("without a budget, %d tries of 200 requests", n)
	}
	begun := time.Now()
	if n := tries("retry-budget: 0"); float64(n) > 200+100+10*time.Since(begun).Seconds()+10 {
		t.Errorf("with a budget of 0, %d tries of 200 requests", n)
	}
	if n := g.Value(g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads", n)
	}
}
