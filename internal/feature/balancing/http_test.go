package balancing_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A fleet is a backend of several endpoints, which count their requests.
type fleet struct {
	g         *headgatetest.Instance
	addresses []string
	counts    []atomic.Int64
	// delays is how long an endpoint takes, and statuses what it answers if it is
	// not 0. held is a channel that it waits for before, none if nil.
	delays   []atomic.Int64
	statuses []atomic.Int64
	held     atomic.Pointer[chan struct{}]
}

func newFleet(t *testing.T, size, workers int, annotations ...string) *fleet {
	f := &fleet{counts: make([]atomic.Int64, size), delays: make([]atomic.Int64, size), statuses: make([]atomic.Int64, size)}
	for i := range size {
		f.addresses = append(f.addresses, headgatetest.StartPlain(t, func(*http.Request) (int, string) {
			f.counts[i].Add(1)
			if held := f.held.Load(); held != nil {
				<-*held
			}
			time.Sleep(time.Duration(f.delays[i].Load()))
			return int(f.statuses[i].Load()), "X-Endpoint: " + strconv.Itoa(i) + "\r\n"
		}))
	}
	shows, ingress := headgatetest.ShowsWorker()
	f.g = headgatetest.Start(t, headgatetest.Options{Features: append(all.Features(), shows), Workers: workers,
		Manifests: headgatetest.Config(keepsConnections) + headgatetest.Service("fleet") + headgatetest.Endpoints("fleet", f.addresses...) + headgatetest.Ingress("web", fleetHost, "/", "fleet", annotations...) + ingress})
	return f
}

const (
	fleetHost = "fleet.test"
	// keepsConnections is a key that keeps the clients' connections.
	keepsConnections = "keep-alive-requests: 1000000"
)

func (f *fleet) annotate(annotations ...string) {
	f.g.Apply(headgatetest.Ingress("web", fleetHost, "/", "fleet", annotations...))
	f.reset()
}

func (f *fleet) reset() {
	for i := range f.counts {
		f.counts[i].Store(0)
	}
}

// ask sends requests by several clients.
func (f *fleet) ask(t *testing.T, requests, clients int, path func(i int) string) {
	t.Helper()
	var connections headgatetest.Connections
	for range clients {
		connections = append(connections, f.g.Connect())
	}
	if err := connections.Each(requests, func(c *headgatetest.Connection, i int) error {
		_, err := c.Ask(fleetHost, path(i))
		return err
	}); err != nil {
		t.Error(err)
	}
}

func root(int) string { return "/" }

func (f *fleet) shares() []int {
	shares := make([]int, len(f.counts))
	for i := range f.counts {
		shares[i] = int(f.counts[i].Load())
	}
	return shares
}

// An endpoint that takes long gets fewer requests, by each algorithm that looks at it.
func TestSlowEndpointsGetLess(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
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

// A backend that Headgate itself asks, as a mirror, keeps its picker for clients.
func TestMirrorsLeaveKeysAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 1, "upstream-hash-by: $arg_k")
	f.g.Apply(headgatetest.Service("app") + headgatetest.Endpoints("app", headgatetest.StartEcho(t, "app")) +
		headgatetest.Ingress("copied", "copied.test", "/", "app", "mirror-target: http://fleet.default.svc.cluster.local/copy"))
	f.ask(t, 1, 1, root)
	f.reset()
	f.g.Get("copied.test", "/").WantStatus(t, 200)
	headgatetest.Eventually(t, "the copy came", func() bool {
		total := 0
		for _, n := range f.shares() {
			total += n
		}
		return total > 0
	})
	// Shortcuts are learned again after a change of anything.
	f.g.Apply(headgatetest.Service("other") + headgatetest.Endpoints("other", "127.0.0.1:1") + headgatetest.Ingress("other", "other.test", "/", "other"))
	f.reset()
	f.ask(t, 40, 1, func(int) string { return "/?k=1" })
	for i, n := range f.shares() {
		if n != 0 && n != 40 {
			t.Errorf("endpoint %d got %d of 40 requests with one key", i, n)
		}
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
	f.g.Apply(headgatetest.Config(keepsConnections, "load-balance: least_conn"))
	f.ask(t, 400, 8, root)
	if got := f.shares()[0]; got > 80 {
		t.Errorf("the slow endpoint got %d of 400 requests, as by turns", got)
	}
	if n := f.g.Value(f.g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads", n)
	}
}
