package balancing_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/headgatetest"
)

// A fleet is a backend of several endpoints, which count their requests.
type fleet struct {
	g         *headgatetest.Instance
	addresses []string
	counts    []atomic.Int64
	// delays is how long an endpoint takes, and statuses what it answers if it is
	// not 0.
	delays   []atomic.Int64
	statuses []atomic.Int64
}

func newFleet(t *testing.T, size, workers int, annotations ...string) *fleet {
	f := &fleet{counts: make([]atomic.Int64, size), delays: make([]atomic.Int64, size), statuses: make([]atomic.Int64, size)}
	for i := range size {
		f.addresses = append(f.addresses, headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.counts[i].Add(1)
			time.Sleep(time.Duration(f.delays[i].Load()))
			w.Header().Set("X-Endpoint", strconv.Itoa(i))
			if status := int(f.statuses[i].Load()); status != 0 {
				w.WriteHeader(status)
			}
		})))
	}
	f.g = headgatetest.Start(t, headgatetest.Options{Features: all.Features(), Workers: workers,
		Manifests: headgatetest.Service("fleet") + headgatetest.Endpoints("fleet", f.addresses...) + headgatetest.Ingress("web", "fleet.test", "/", "fleet", annotations...)})
	return f
}

func (f *fleet) annotate(annotations ...string) {
	f.g.Apply(headgatetest.Ingress("web", "fleet.test", "/", "fleet", annotations...))
	for i := range f.counts {
		f.counts[i].Store(0)
	}
}

// ask sends requests by several clients and returns how long each took.
func (f *fleet) ask(t *testing.T, requests, clients int, path func(i int) string) []time.Duration {
	t.Helper()
	times := make([]time.Duration, requests)
	var next atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			client := f.g.NewClient(false)
			defer client.CloseIdleConnections()
			for i := int(next.Add(1)) - 1; i < requests; i = int(next.Add(1)) - 1 {
				begun := time.Now()
				if _, err := f.g.Try(client, headgatetest.Request{Host: "fleet.test", Path: path(i)}); err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				times[i] = time.Since(begun)
			}
		})
	}
	group.Wait()
	return times
}

func root(int) string { return "/" }

func (f *fleet) shares() []int {
	shares := make([]int, len(f.counts))
	for i := range f.counts {
		shares[i] = int(f.counts[i].Load())
	}
	return shares
}

// Equal endpoints get equal shares, by each algorithm that does not look at the request.
func TestEqualEndpointsGetEqualShares(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 2)
	const requests = 4000
	for _, algorithm := range []string{"round_robin", "least_conn", "random"} {
		f.annotate("load-balance: " + algorithm)
		f.ask(t, requests, 1, root)
		// Five standard deviations of independent choices, which no run in a million exceeds.
		want, deviation := float64(requests)/4, math.Sqrt(requests*0.25*0.75)
		for i, n := range f.shares() {
			if math.Abs(float64(n)-want) > 5*deviation {
				t.Errorf("%s: endpoint %d got %d of %d requests", algorithm, i, n, requests)
			}
		}
	}
}

// An endpoint that takes long gets fewer requests, by each algorithm that looks at it.
func TestSlowEndpointsGetLess(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 1)
	f.delays[0].Store(int64(50 * time.Millisecond))
	for algorithm, most := range map[string]int{"ewma": 300, "least_conn": 400, "random": 450} {
		f.annotate("load-balance: " + algorithm)
		f.ask(t, 2000, 8, root)
		if got := f.shares()[0]; got > most || got == 0 {
			t.Errorf("%s: the slow endpoint got %d of 2000 requests, want 1 to %d", algorithm, got, most)
		}
	}
}

// With ewma, a slow endpoint costs clients next to nothing, and one that fails quickly does not
// attract requests.
func TestEWMA(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 2, "load-balance: ewma")
	const normal = 50 * time.Millisecond
	for i := range f.delays {
		f.delays[i].Store(int64(normal))
	}
	f.ask(t, 200, 32, root) // until the averages are there
	f.delays[0].Store(int64(10 * normal))
	f.ask(t, 200, 32, root)
	f.annotate("load-balance: ewma")
	f.ask(t, 3000, 32, root)
	// On a quiet machine it gets less than a hundredth, which does not change p99. Pauses of
	// a busy one make the others look slow, too.
	if got := f.shares()[0]; got > 150 {
		t.Errorf("the endpoint that takes ten times as long got %d of 3000 requests", got)
	}

	f.delays[0].Store(0)
	f.statuses[0].Store(500)
	f.annotate("load-balance: ewma")
	f.ask(t, 2000, 16, root)
	if got := f.shares()[0]; got > 300 {
		t.Errorf("the endpoint that fails quickly got %d of 2000 requests", got)
	}
}

// Requests with the same key go to the same endpoint, also over several workers; and a change of
// the endpoints moves little more than the keys that it must.
func TestHashMovesFewKeys(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 10, 2, "upstream-hash-by: ${arg_a}-text-$arg_b")
	const keys = 2000
	place := func() []string {
		at := make([]string, keys)
		client := f.g.NewClient(false)
		defer client.CloseIdleConnections()
		for i := range at {
			response, err := f.g.Try(client, headgatetest.Request{Host: "fleet.test", Path: fmt.Sprintf("/%d?a=%d&b=x", i%7, i)})
			if err != nil {
				t.Fatal(err)
			}
			at[i] = response.Header.Get("X-Endpoint")
		}
		return at
	}
	whole := place()
	if again := place(); !slices.Equal(whole, again) {
		t.Error("keys moved though nothing changed")
	}
	shares := map[string]int{}
	for _, at := range whole {
		shares[at]++
	}
	if len(shares) != 10 {
		t.Errorf("%d endpoints have keys: %v", len(shares), shares)
	}
	f.g.Delete("kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-9}\n")
	fewer := place()
	moved := 0
	for i := range whole {
		if whole[i] != fewer[i] {
			moved++
			if whole[i] != "9" {
				t.Fatalf("key %d moved from endpoint %s to %s, which are both there", i, whole[i], fewer[i])
			}
		}
	}
	if moved != shares["9"] {
		t.Errorf("%d keys moved, and the endpoint had %d", moved, shares["9"])
	}
	f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
	if again := place(); !slices.Equal(whole, again) {
		t.Error("with the same endpoints as at first, keys are elsewhere")
	}
	if share := float64(shares["9"]) / keys; share > 0.1*1.5 || share < 0.1/1.5 {
		t.Errorf("an endpoint of ten has a share of %.3f", share)
	}

	// A changed expression acts at once.
	f.annotate("upstream-hash-by: $uri")
	if ends := strings.Join(slices.Compact(slices.Sorted(slices.Values(place()))), " "); len(strings.Fields(ends)) > 7 {
		t.Errorf("seven paths go to the endpoints %s", ends)
	}
}

// A retry goes to the next endpoint of the key, always the same one.
func TestHashGoesOnAtAFailure(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 1, "upstream-hash-by: $arg_k", "proxy-next-upstream: error http_503")
	at := func() int {
		n, err := strconv.Atoi(f.g.Get("fleet.test", "/?k=1").WantStatus(t, 200).Header.Get("X-Endpoint"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := at()
	f.statuses[first].Store(503)
	second := at()
	if second == first {
		t.Fatal("the retry went to the endpoint that failed")
	}
	if again := at(); again != second {
		t.Errorf("the retry went to endpoint %d, and to %d before", again, second)
	}
	f.statuses[first].Store(0)
	if again := at(); again != first {
		t.Errorf("endpoint %d, and %d before the failure", again, first)
	}
}

// A key of a subset goes to as many endpoints as the subset has.
func TestSubsets(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 7, 2, "upstream-hash-by: $arg_k", "upstream-hash-by-subset: true", "upstream-hash-by-subset-size: 2")
	used := func() int {
		n := 0
		for _, share := range f.shares() {
			if share > 0 {
				n++
			}
		}
		return n
	}
	f.ask(t, 200, 1, func(int) string { return "/?k=1" })
	if n := used(); n != 2 {
		t.Errorf("a key goes to %d endpoints, want 2", n)
	}
	f.annotate("upstream-hash-by: $arg_k", "upstream-hash-by-subset: true")
	f.ask(t, 300, 1, func(int) string { return "/?k=1" })
	if n := used(); n != 3 {
		t.Errorf("a key goes to %d endpoints, want 3", n)
	}
	f.annotate("upstream-hash-by: $arg_k", "upstream-hash-by-subset: true")
	f.ask(t, 1000, 1, func(i int) string { return fmt.Sprintf("/?k=%d", i) })
	if n := used(); n != 7 {
		t.Errorf("all keys go to %d endpoints, want 7", n)
	}
	// A group that is larger than the backend is all of it.
	f.annotate("upstream-hash-by: $arg_k", "upstream-hash-by-subset: true", "upstream-hash-by-subset-size: 100000")
	f.ask(t, 300, 1, func(int) string { return "/?k=1" })
	if n := used(); n != 7 {
		t.Errorf("a key goes to %d endpoints, want all 7", n)
	}
}

// The picker of a backend may change while requests are in progress.
func TestAlgorithmsChangeUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 2)
	var group sync.WaitGroup
	group.Go(func() { f.ask(t, 3000, 4, root) })
	for i := range 20 {
		f.g.Apply(headgatetest.Ingress("web", "fleet.test", "/", "fleet", []string{"load-balance: ewma", "load-balance: least_conn", "upstream-hash-by: $arg_k", "load-balance: random"}[i%4]))
		f.g.Apply(headgatetest.Endpoints("fleet", f.addresses[i%3:]...)) // in another order
	}
	group.Wait()
	if log := f.g.Log.String(); strings.Contains(log, "attempt to") {
		t.Errorf("a picker failed:\n%s", log)
	}
}

// The key applies to backends without the annotation, and a change needs no reload.
func TestKey(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 1)
	f.delays[0].Store(int64(50 * time.Millisecond))
	reloads := f.g.Value(f.g.Metrics.Reloads)
	f.g.Apply(headgatetest.Config("load-balance: least_conn"))
	f.ask(t, 400, 8, root)
	if got := f.shares()[0]; got > 80 {
		t.Errorf("the slow endpoint got %d of 400 requests, as by turns", got)
	}
	if n := f.g.Value(f.g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads", n)
	}
}
