package ejection_test

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

const workers = 4

// dead is an address where connections are refused.
const dead = "127.0.0.1:1"

// start serves a backend of these endpoints.
func start(t *testing.T, workers int, endpoints []string, annotations ...string) *headgatetest.Instance {
	return headgatetest.Start(t, headgatetest.Options{Features: all.Features(), Workers: workers, Manifests: headgatetest.Service("web") + headgatetest.Endpoints("web", endpoints...) +
		headgatetest.Ingress("web", "web.test", "/", "web", annotations...)})
}

// ask sends requests one after the other, each over a connection of its own, so that all workers
// get some. It returns the numbers of responses by status.
func ask(t *testing.T, g *headgatetest.Instance, requests int) map[int]int {
	t.Helper()
	statuses := map[int]int{}
	for range requests {
		statuses[g.Get("web.test", "/").Status]++
	}
	return statuses
}

// refused and timedOut are how often NGINX was refused a connection to an endpoint, and how
// often it waited in vain.
func refused(g *headgatetest.Instance, endpoint string) int {
	return failures(g, "Connection refused", endpoint)
}

func timedOut(g *headgatetest.Instance, endpoint string) int {
	return failures(g, "upstream timed out", endpoint)
}

func failures(g *headgatetest.Instance, message, endpoint string) int {
	n := 0
	for line := range strings.SplitSeq(g.Log.String(), "\n") {
		if strings.Contains(line, message) && strings.Contains(line, "//"+endpoint+"/") {
			n++
		}
	}
	return n
}

// A counter is an endpoint that counts its requests.
type counter struct {
	address string
	n       atomic.Int64
	status  atomic.Int64
}

func newCounter(t *testing.T) *counter {
	c := &counter{}
	c.status.Store(http.StatusOK)
	c.address = headgatetest.StartBackend(t, c)
	return c
}

func (c *counter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.n.Add(1)
	w.WriteHeader(int(c.status.Load()))
}

// An endpoint that refuses connections costs each worker one try, and no request fails.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	g := start(t, workers, []string{dead, headgatetest.StartEcho(t, "a"), headgatetest.StartEcho(t, "b")})
	if statuses := ask(t, g, 200); statuses[200] != 200 {
		t.Errorf("the statuses are %v", statuses)
	}
	if n := refused(g, dead); n == 0 || n > workers {
		t.Errorf("%d connections were refused, want one for each of %d workers", n, workers)
	}
	state := g.State()
	if len(state.Ejected) != 1 || state.Ejected[0].Endpoint != dead || state.Ejected[0].Reason != "connect" || !state.Ejected[0].Avoided || state.Ejections["connect"]["default"] != int64(refused(g, dead)) {
		t.Errorf("the state has %+v and %v", state.Ejected, state.Ejections)
	}
	if n, err := testutil.GatherAndCount(g.Metrics.Registry, "headgate_endpoint_ejections_total"); n != 1 || err != nil {
		t.Errorf("%d series of headgate_endpoint_ejections_total, %v", n, err)
	}
	if !strings.Contains(g.Log.String(), "endpoint "+dead+" of backend default/web/80 is ejected: connect failed: connection refused") {
		t.Error("the log does not say that the endpoint is ejected")
	}
}

// It may be turned off, by the annotation and by the key.
func TestOff(t *testing.T) {
	t.Parallel()
	g := start(t, 1, []string{dead, headgatetest.StartEcho(t, "a")}, "ejection: off")
	ask(t, g, 20)
	// By turns, a retry takes the turn of the other endpoint.
	all := refused(g, dead)
	if all < 19 {
		t.Errorf("%d of 20 requests went to the dead endpoint, want all but perhaps the first", all)
	}
	g.Apply(headgatetest.Ingress("web", "web.test", "/", "web"))
	ask(t, g, 20)
	if n := refused(g, dead) - all; n != 1 {
		t.Errorf("%d requests went to the dead endpoint, want one more", n)
	}
	g.Apply(headgatetest.Config("ejection: off"))
	ask(t, g, 20)
	if n := refused(g, dead) - all; n < 20 {
		t.Errorf("%d requests went to the dead endpoint, want all again", n)
	}
}

// With one of four endpoints black-holed, each worker waits for it once, and by itself finds out
// that it is back.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	hole := headgatetest.NewFull(t)
	g := start(t, workers, []string{hole.Address, headgatetest.StartEcho(t, "a"), headgatetest.StartEcho(t, "b"), headgatetest.StartEcho(t, "c")}, "proxy-connect-timeout: 1")
	if statuses := ask(t, g, 300); statuses[200] != 300 {
		t.Errorf("the statuses are %v", statuses)
	}
	if n := timedOut(g, hole.Address); n == 0 || n > workers {
		t.Errorf("%d requests waited for the black hole, want one for each of %d workers", n, workers)
	}
	before := timedOut(g, hole.Address)
	var served atomic.Int64
	hole.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	headgatetest.Eventually(t, "all workers ask the endpoint again", func() bool {
		before := served.Load()
		ask(t, g, 40)
		// By turns among four, from any place on, in each worker.
		return served.Load()-before >= 10-workers
	})
	if n := timedOut(g, hole.Address); n != before {
		t.Errorf("%d more requests waited for the endpoint", n-before)
	}
}

// If all endpoints are dead, the answer is 502 as long as none is back, and at once another one then.
func TestAllDead(t *testing.T) {
	t.Parallel()
	addresses := make([]string, 3)
	for i := range addresses {
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.77.0.%d:0", i+1))
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = listener.Addr().String()
		listener.Close()
	}
	g := start(t, 1, addresses)
	if statuses := ask(t, g, 50); statuses[502] != 50 {
		t.Errorf("the statuses are %v", statuses)
	}
	for _, one := range g.State().Ejected {
		if one.Avoided {
			t.Errorf("%s is avoided though all are dead", one.Endpoint)
		}
	}
	for _, address := range addresses {
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		go server.Serve(listener)
		t.Cleanup(func() { server.Close() })
	}
	if statuses := ask(t, g, 20); statuses[200] != 20 {
		t.Errorf("with all endpoints back, the statuses are %v", statuses)
	}
	headgatetest.Eventually(t, "no endpoint is ejected", func() bool { return len(g.State().Ejected) == 0 })
}

// At most a share of a backend is avoided, and retries find what works all the same.
func TestShare(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	endpoints := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", headgatetest.StartEcho(t, "a")}
	for share, want := range map[int]int{50: 2, 30: 1, 1: 1, 75: 3, 100: 3} {
		g := start(t, 1, endpoints, "ejection-max-share: "+strconv.Itoa(share))
		if statuses := ask(t, g, 60); statuses[200] < 59 { // the first request may meet three dead ones
			t.Errorf("with a share of %d %%, the statuses are %v", share, statuses)
		}
		avoided := 0
		for _, one := range g.State().Ejected {
			if one.Avoided {
				avoided++
			}
		}
		if avoided != want {
			t.Errorf("with a share of %d %%, %d of 4 endpoints are avoided, want %d", share, avoided, want)
		}
	}
}

// When other endpoints come and go, what is known of those that stay is not lost. One that went
// begins again.
func TestEndpointsThatStay(t *testing.T) {
	t.Parallel()
	a, b := headgatetest.StartEcho(t, "a"), headgatetest.StartEcho(t, "b")
	g := start(t, 1, []string{dead, a})
	ask(t, g, 10)
	g.Apply(headgatetest.Endpoints("web", b, dead, a))
	ask(t, g, 10)
	if n := refused(g, dead); n != 1 {
		t.Errorf("the dead endpoint was asked %d times", n)
	}
	g.Apply(headgatetest.Endpoints("web", a, b))
	ask(t, g, 10)
	if state := g.State(); len(state.Ejected) != 0 {
		t.Errorf("an endpoint that is gone is ejected: %+v", state.Ejected)
	}
	g.Apply(headgatetest.Endpoints("web", a, b, dead))
	ask(t, g, 10)
	if n := refused(g, dead); n != 2 {
		t.Errorf("the dead endpoint was asked %d times", n)
	}
}

// By the rule of failures, an endpoint is ejected after some in a row, for a time, which other
// requests don't shorten.
func TestFailures(t *testing.T) {
	t.Parallel()
	bad, good := newCounter(t), newCounter(t)
	g := start(t, 1, []string{bad.address, good.address}, "ejection: failures", "ejection-failures: 3", "ejection-statuses: 500", "ejection-time: 3600")
	bad.status.Store(503)
	ask(t, g, 20)
	if n := bad.n.Load(); n != 10 {
		t.Errorf("with another status, it got %d of 20 requests", n)
	}
	bad.status.Store(500)
	ask(t, g, 4)
	bad.status.Store(200)
	ask(t, g, 2)
	bad.status.Store(500)
	ask(t, g, 4)
	if n := bad.n.Load(); n != 15 {
		t.Errorf("with two failures in a row, it got %d of 30 requests", n)
	}
	if statuses := ask(t, g, 20); statuses[500] != 1 {
		t.Errorf("behind the third failure in a row, the statuses are %v", statuses)
	}
	state := g.State()
	if len(state.Ejected) != 1 || state.Ejected[0].Reason != "failures" || state.Ejected[0].Until-state.Ejected[0].Since != 3600 {
		t.Errorf("the state has %+v", state.Ejected)
	}
	// Without the rule there is no ejection by it.
	g.Apply(headgatetest.Ingress("web", "web.test", "/", "web"))
	bad.status.Store(200)
	before := bad.n.Load()
	ask(t, g, 20)
	if n := bad.n.Load() - before; n != 10 {
		t.Errorf("without the rule, it got %d of 20 requests", n)
	}
	g.Apply(headgatetest.Ingress("web", "web.test", "/", "web", "ejection: failures", "ejection-failures: 1", "ejection-statuses: 500", "ejection-time: 1"))
	bad.status.Store(500)
	ask(t, g, 4)
	bad.status.Store(200)
	before = bad.n.Load()
	headgatetest.Eventually(t, "the endpoint is asked when its time is over", func() bool {
		ask(t, g, 2)
		return bad.n.Load() > before
	})
}

// A session stays at its endpoint, unless it is to move at failures.
func TestSessions(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		a, b := newCounter(t), newCounter(t)
		g := start(t, 1, []string{a.address, b.address}, "affinity: cookie", "session-cookie-change-on-failure: "+strconv.FormatBool(moves),
			"ejection: failures", "ejection-failures: 1", "ejection-statuses: 500", "ejection-time: 3600")
		response := g.Get("web.test", "/").WantStatus(t, 200)
		cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
		own, other := a, b
		if b.n.Load() > 0 {
			own, other = b, a
		}
		own.status.Store(500)
		visit := func() int {
			return g.Do(headgatetest.Request{Host: "web.test", Path: "/", Header: http.Header{"Cookie": {cookie}}}).Status
		}
		visit()
		own.status.Store(200)
		visit()
		if moved := other.n.Load() > 0; moved != moves {
			t.Errorf("change-on-failure %t: the session moved: %t", moves, moved)
		}
		before := own.n.Load()
		ask(t, g, 10)
		if n := own.n.Load() - before; n != 0 {
			t.Errorf("%d new sessions began at the ejected endpoint", n)
		}
	}
}

// A failed TLS handshake is not a failure to connect: it may be the fault of one route's settings.
func TestHandshakesDoNotEject(t *testing.T) {
	t.Parallel()
	plain, other := newCounter(t), newCounter(t)
	g := start(t, 1, []string{plain.address, other.address}, "backend-protocol: HTTPS")
	if statuses := ask(t, g, 10); statuses[502] != 10 {
		t.Errorf("the statuses are %v", statuses)
	}
	if state := g.State(); len(state.Ejected) != 0 || state.Ejections != nil {
		t.Errorf("the state has %+v and %v", state.Ejected, state.Ejections)
	}
}

// A request with a body leaves a dead endpoint, and all pickers avoid it.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	g := start(t, 1, []string{dead, headgatetest.StartEcho(t, "a"), headgatetest.StartEcho(t, "b")})
	post := func() {
		t.Helper()
		g.Do(headgatetest.Request{Method: http.MethodPost, Host: "web.test", Path: "/", Body: strings.NewReader("body")}).WantStatus(t, 200)
	}
	for range 10 {
		post()
	}
	if n := refused(g, dead); n != 1 {
		t.Errorf("the dead endpoint was asked %d times by POST", n)
	}
	for _, annotation := range []string{"load-balance: ewma", "load-balance: least_conn", "load-balance: random", "upstream-hash-by: $request_uri", "affinity: cookie", "proxy-next-upstream-tries: 2"} {
		g.Apply(headgatetest.Ingress("web", "web.test", "/", "web", annotation))
		for i := range 20 {
			g.Get("web.test", "/"+strconv.Itoa(i)).WantStatus(t, 200)
		}
		post()
		if n := refused(g, dead); n != 1 {
			t.Errorf("%s: the dead endpoint was asked %d times in all", annotation, n)
		}
	}
}

// The last endpoint that is left is never ejected.
func TestSingleEndpoint(t *testing.T) {
	t.Parallel()
	g := start(t, 1, []string{dead})
	if statuses := ask(t, g, 10); statuses[502] != 10 {
		t.Errorf("the statuses are %v", statuses)
	}
	if state := g.State(); len(state.Ejected) != 0 {
		t.Errorf("the state has %+v", state.Ejected)
	}
	// As many tries as ever.
	if n := refused(g, dead); n != 30 {
		t.Errorf("%d tries for 10 requests, want 30", n)
	}
}
