package balancing_test

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Bounds on what is left to chance are six standard deviations: with dozens of checks, one run in
// ten million exceeds them. With three, one check in 370 would fail for nothing.
const deviations = 6

// The number of workers, and of requests: to each worker come the same number.
const workers, manyRequests = 4, 20_000

// wantShare fails the test unless n of all requests fit a share.
func wantShare(t *testing.T, what string, n, all int, share float64) {
	t.Helper()
	want, most := float64(all)*share, deviations*math.Sqrt(float64(all)*share*(1-share))
	if math.Abs(float64(n)-want) > most {
		t.Errorf("%s got %d of %d requests, want %.0f ± %.0f", what, n, all, want, most)
	}
}

// endpointOf is the endpoint that answered.
func endpointOf(response *http.Response) (int, error) {
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d", response.StatusCode)
	}
	return strconv.Atoi(response.Header.Get("X-Endpoint"))
}

// By turns, each worker gives all endpoints the same number of requests, no matter from how many
// clients, and by which routes.
func TestTurnsAreExact(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const endpoints = 7
	f := newFleet(t, endpoints, workers)
	f.g.Apply(headgatetest.Ingress("other", "other.test", "/", "fleet", "upstream-vhost: vhost.test"))
	var mu sync.Mutex
	var counts [workers][endpoints]int
	clients := f.g.Connections(workers, 4)
	err := clients.Each(manyRequests, func(c *headgatetest.Connection, i int) error {
		response, err := c.Ask([]string{fleetHost, "other.test"}[i%2], "/")
		if err != nil {
			return err
		}
		index, err := endpointOf(response)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		counts[c.Worker][index]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for worker, shares := range counts {
		if slices.Max(shares[:])-slices.Min(shares[:]) > 1 || slices.Min(shares[:]) == 0 {
			t.Errorf("worker %d: the endpoints got %v requests", worker, shares)
		}
	}
}

// Turns begin at a random endpoint in each worker, when the endpoints change.
func TestTurnsBeginAtRandom(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const endpoints, rounds = 10, 50
	f := newFleet(t, endpoints, workers)
	clients := f.g.Connections(workers, 1)
	counts, together := [endpoints]int{}, 0
	for range rounds {
		var starts []int
		for _, change := range []func(){
			func() { f.g.Delete(sliceOf(endpoints - 1)) },
			func() { f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...)) },
		} {
			change()
			starts = nil
			for _, c := range clients {
				response, err := c.Ask(fleetHost, "/")
				if err != nil {
					t.Fatal(err)
				}
				index, err := endpointOf(response)
				if err != nil {
					t.Fatal(err)
				}
				starts = append(starts, index)
			}
		}
		for _, index := range starts {
			counts[index]++
		}
		if slices.Max(starts) == slices.Min(starts) {
			together++
		}
	}
	// Too few for wantShare: none has no request, or three times its share, by chance.
	if slices.Min(counts[:]) == 0 || slices.Max(counts[:]) > 3*rounds*workers/endpoints {
		t.Errorf("the endpoints got %v first requests", counts)
	}
	// One round in a thousand by chance.
	if together > 3 {
		t.Errorf("in %d of %d rounds all workers began at the same endpoint", together, rounds)
	}
}

// sliceOf is the EndpointSlice of an endpoint, to be deleted.
func sliceOf(endpoint int) string {
	return fmt.Sprintf("kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-%d}\n", endpoint)
}

// Endpoints without requests in progress get equal shares. Requests come one at a time, so that
// a machine that stalls an endpoint changes nothing.
func TestIdleEndpointsGetEqualShares(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const endpoints = 4
	f := newFleet(t, endpoints, workers)
	clients := f.g.Connections(workers, 1)
	for _, annotations := range [][]string{{"load-balance: least_conn"}, {"load-balance: random"},
		{"upstream-hash-by: $host", "upstream-hash-by-subset: true", "upstream-hash-by-subset-size: 4"}} {
		f.annotate(annotations...)
		for i := range manyRequests / 4 {
			if _, err := clients[i%workers].Ask(fleetHost, "/"); err != nil {
				t.Fatal(err)
			}
		}
		for i, n := range f.shares() {
			wantShare(t, fmt.Sprintf("%v: endpoint %d", annotations, i), n, manyRequests/4, 1.0/endpoints)
		}
	}
}

// least_conn gives each endpoint the same number of requests in progress, and random nearly so:
// choosing one at random would leave a far larger spread.
func TestRequestsInProgressAreEven(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const endpoints, each, rounds = 10, 50, 6
	f := newFleet(t, endpoints, workers)
	clients := f.g.Connections(workers, each)
	// squares returns the sum of the squares of the deviations from the mean.
	squares := func(algorithm string) (sum int) {
		f.annotate("load-balance: " + algorithm)
		for range rounds {
			f.reset()
			held := make(chan struct{})
			f.held.Store(&held)
			done := make(chan error)
			go func() {
				// Those that are held take no second one.
				done <- clients.Each(len(clients), func(c *headgatetest.Connection, _ int) error {
					_, err := c.Ask(fleetHost, "/")
					return err
				})
			}()
			total := func() (n int) {
				for _, share := range f.shares() {
					n += share
				}
				return n
			}
			headgatetest.Eventually(t, "all requests are in progress", func() bool { return total() == len(clients) })
			for _, share := range f.shares() {
				off := share - len(clients)/endpoints
				sum += off * off
			}
			f.held.Store(nil)
			close(held)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		return sum
	}
	if got := squares("least_conn"); got != 0 {
		t.Errorf("least_conn: the sum of squares is %d, want 0", got)
	}
	// At random, it is that of chance: n p (1 - p) for each endpoint.
	chance := rounds * len(clients) * (endpoints - 1) / endpoints
	got := squares("random")
	t.Logf("random: %d, by chance %d", got, chance)
	if got > chance/2 {
		t.Errorf("random: the sum of squares is %d; by chance it would be %d", got, chance)
	}
}

// A retry asks no endpoint that was asked, by any algorithm, as long as there is another one.
func TestRetriesAskOthers(t *testing.T) {
	t.Parallel()
	const endpoints, requests = 3, 400
	tries := []string{"proxy-next-upstream: error http_503", "proxy-next-upstream-tries: 3", "retry-budget: 100"}
	f := newFleet(t, endpoints, workers, tries...)
	for i := range endpoints - 1 {
		f.statuses[i].Store(503)
	}
	clients := f.g.Connections(workers, 2)
	for _, annotations := range [][]string{
		{"load-balance: round_robin"}, {"load-balance: ewma"}, {"load-balance: least_conn"}, {"load-balance: random"},
		{"upstream-hash-by: $arg_k"}, {"upstream-hash-by: $arg_k", "upstream-hash-by-subset: true", "upstream-hash-by-subset-size: 2"},
		{"affinity: cookie"}, {"affinity: cookie", "affinity-mode: persistent"},
	} {
		f.annotate(append(annotations, tries...)...)
		// A second try at the same endpoint would leave too few for the last one, which
		// alone answers 200.
		err := clients.Each(requests, func(c *headgatetest.Connection, i int) error {
			response, err := c.Ask(fleetHost, fmt.Sprintf("/?k=%d", i))
			if err == nil && response.StatusCode != http.StatusOK {
				err = fmt.Errorf("status %d", response.StatusCode)
			}
			return err
		})
		shares := f.shares()
		if err != nil || shares[endpoints-1] != requests || shares[0] == 0 || shares[1] == 0 || shares[0] > requests || shares[1] > requests {
			t.Errorf("%v: %v; the endpoints got %v of %d requests", annotations, err, shares, requests)
		}
	}
}

// A ring is that of OpenResty's chash, which ingress-nginx has too: 160 points for each endpoint.
type ring []point

type point struct {
	hash  uint32
	index int
}

func newRing(endpoints []string) ring {
	var r ring
	for index, endpoint := range endpoints {
		base, hash := crc32.ChecksumIEEE([]byte(endpoint)), uint32(0)
		for range 160 {
			hash = crc32.Update(base, crc32.IEEETable, []byte{byte(hash), byte(hash >> 8), byte(hash >> 16), byte(hash >> 24)})
			r = append(r, point{hash, index})
		}
	}
	slices.SortStableFunc(r, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
	return r
}

func (r ring) find(key string) int {
	at, _ := slices.BinarySearchFunc(r, crc32.ChecksumIEEE([]byte(key)), func(p point, hash uint32) int { return cmp.Compare(p.hash, hash) })
	return r[at%len(r)].index
}

// All workers send a key to the same endpoint, that of the ring; of other keys none moves when an
// endpoint of ten comes or goes. A changed expression acts at once.
func TestHashMovesNoOtherKeys(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const endpoints, keys = 10, manyRequests / 4
	f := newFleet(t, endpoints, workers, "upstream-hash-by: ${arg_a}-text-$arg_b")
	clients := f.g.Connections(workers, 2)
	place := func() []int {
		at := make([]int, keys)
		err := clients.Each(keys, func(c *headgatetest.Connection, i int) error {
			response, err := c.Ask(fleetHost, fmt.Sprintf("/%d?a=%d&b=x", i%7, i))
			if err == nil {
				at[i], err = endpointOf(response)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	check := func(when string, at []int, among []string) {
		t.Helper()
		r := newRing(among)
		for i, got := range at {
			if want := r.find(fmt.Sprintf("%d-text-x", i)); got != want {
				t.Fatalf("%s: key %d is at endpoint %d, want %d", when, i, got, want)
			}
		}
	}
	whole := place()
	check("all endpoints", whole, f.addresses)
	f.g.Delete(sliceOf(endpoints - 1))
	fewer := place()
	check("one endpoint less", fewer, f.addresses[:endpoints-1])
	for i := range whole {
		if whole[i] != fewer[i] && whole[i] != endpoints-1 {
			t.Fatalf("key %d moved from endpoint %d to %d, which are both there", i, whole[i], fewer[i])
		}
	}
	f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
	check("all endpoints again", place(), f.addresses)

	f.annotate("upstream-hash-by: $uri")
	used := place()
	slices.Sort(used)
	if used = slices.Compact(used); len(used) > 7 {
		t.Errorf("seven paths go to the endpoints %v", used)
	}
}

// The keys that move when one endpoint of ten comes or goes are those of its part of the ring:
// rarely more than 1.2 times a tenth. The ring depends on the addresses alone; these are like
// those of pods in a cluster. TestHashMovesNoOtherKeys shows that workers have the same ring.
func TestAnEndpointHasItsShareOfKeys(t *testing.T) {
	t.Parallel()
	const endpoints, keys, sets = 10, 20_000, 20
	above := 0
	for set := range sets {
		var addresses []string
		for i := range endpoints {
			addresses = append(addresses, fmt.Sprintf("10.244.%d.%d:8080", i%3, 5+set*7+i/3))
		}
		r := newRing(addresses)
		var counts [endpoints]int
		for i := range keys {
			counts[r.find(fmt.Sprintf("/items/%d", i))]++
		}
		if most := slices.Max(counts[:]); most > 1.2*keys/endpoints {
			above++
			t.Logf("set %d: %.2f times its share", set, float64(most)*endpoints/keys)
		}
	}
	// 160 points an endpoint leave a standard deviation of 8 %, so one endpoint of 150 has
	// more than 1.2 times its share.
	if above > 2 {
		t.Errorf("in %d of %d sets of addresses, one endpoint of ten has more than 1.2 times its share of keys", above, sets)
	}
}
