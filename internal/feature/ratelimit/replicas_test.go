package ratelimit_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// away is the URL of a store that is not there.
const away = "redis://127.0.0.1:1"

// byHeader has the header X-Client say who a client is.
const byHeader = "global-rate-limit-key: $http_x_client"

// replicas are three instances that count together.
func replicas(t *testing.T, store string, annotations ...string) []*headgatetest.Instance {
	t.Helper()
	var list []*headgatetest.Instance
	manifests := backend(t) + headgatetest.Ingress("web", "a.test", "/", "a", annotations...)
	for range 3 {
		list = append(list, headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), LimitStore: store, Manifests: manifests}))
	}
	return list
}

// passes sends a client's request, and reports whether it passed.
func passes(t *testing.T, g *headgatetest.Instance, client string) bool {
	t.Helper()
	r := g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"X-Client": {client}}})
	if r.Status != 200 && r.Status != 429 {
		t.Fatalf("status %d, want 200 or 429", r.Status)
	}
	return r.Status == 200
}

// value is that of a metric without labels.
func value(t *testing.T, g *headgatetest.Instance, name string) float64 {
	t.Helper()
	families, err := g.Metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// What one replica counts, the others know soon, and still when the store has lost it.
func TestReplicas(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	store := headgatetest.StartRedis(t)
	const limit = 6
	list := replicas(t, store.URL(), fmt.Sprint("global-rate-limit: ", limit), "global-rate-limit-window: 24h", byHeader)
	// refuses reports whether a replica knows what another one let pass.
	refuses := func(from, to *headgatetest.Instance, client string) bool {
		for i := range limit {
			if !passes(t, from, client) {
				t.Fatalf("request %d of %s is refused", i+1, client)
			}
		}
		from.AwaitExchange()
		// Its first request has a replica ask for the client.
		if !passes(t, to, client) {
			t.Fatalf("the first request of %s to a further replica is refused", client)
		}
		to.AwaitExchange()
		return !passes(t, to, client)
	}
	tries, client := 0, ""
	knows := func(from, to *headgatetest.Instance) func() bool {
		return func() bool {
			tries++
			client = fmt.Sprint("client", tries)
			return refuses(from, to, client)
		}
	}
	for i, g := range list {
		headgatetest.Eventually(t, "a replica knows of the requests to another", knows(list[(i+1)%len(list)], g))
	}
	store.Kill()
	store.Start()
	if passes(t, list[len(list)-1], client) {
		t.Error("a request passed after the store was started again")
	}
	headgatetest.Eventually(t, "replicas count together again", knows(list[0], list[1]))
}

// Of a load of one client over three replicas passes what the limit says, and what comes to the
// replicas until they know of each other.
func TestErrorOverReplicas(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const limit, each, pause = 600, 600, 5 * time.Millisecond
	list := replicas(t, headgatetest.StartRedis(t).URL(), fmt.Sprint("global-rate-limit: ", limit), "global-rate-limit-window: 24h", byHeader)
	var passed atomic.Int64
	var wait sync.WaitGroup
	for _, g := range list {
		wait.Go(func() {
			for range each {
				if passes(t, g, "c") {
					passed.Add(1)
				}
				// At most 200 a second.
				time.Sleep(pause)
			}
		})
	}
	wait.Wait()
	// A counter waits for an exchange of its replica, and then for one of each other.
	var longest []time.Duration
	for _, g := range list {
		longest = append(longest, g.LongestExchange())
	}
	unknown := len(list) * int(2*slices.Max(longest)/pause+1)
	t.Logf("of %d requests %d passed, with a limit of %d; exchanges took up to %v", len(list)*each, passed.Load(), limit, slices.Max(longest))
	if most := int64(limit + unknown); passed.Load() < limit || passed.Load() > most {
		t.Errorf("%d requests passed, want %d to %d", passed.Load(), limit, most)
	}
}

// Without a store a replica counts alone, over all workers.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	show, shows := headgatetest.ShowsWorker()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 4, Features: append(all.Features(), show), Timing: headgatetest.Hasty(), LimitStore: away, Manifests: backend(t) + shows +
		headgatetest.Ingress("web", "a.test", "/", "a", "global-rate-limit: 100", "global-rate-limit-window: 24h")})
	var passed atomic.Int64
	err := g.Connections(4, 4).Each(1000, func(conn *headgatetest.Connection, _ int) error {
		response, err := conn.Ask("a.test", "/")
		if err == nil && response.StatusCode == 200 {
			passed.Add(1)
		}
		return err
	})
	if err != nil || passed.Load() != 100 {
		t.Errorf("%d requests passed, want 100; %v", passed.Load(), err)
	}
	headgatetest.Eventually(t, "the metric says that the store is away", func() bool { return value(t, g, "headgate_limit_store_failures_total") > 0 })
	if up := value(t, g, "headgate_limit_store_up"); up != 0 {
		t.Errorf("headgate_limit_store_up is %v", up)
	}
}

// The store is killed and comes back while requests go on: none fails, and none takes longer.
func TestStoreKilledUnderLoad(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	store := headgatetest.StartRedis(t)
	show, shows := headgatetest.ShowsWorker()
	g := headgatetest.Start(t, headgatetest.Options{Features: append(all.Features(), show), Timing: headgatetest.Hasty(), LimitStore: store.URL(), Manifests: backend(t) + shows + headgatetest.Config("keep-alive-requests: 1000000") +
		headgatetest.Ingress("web", "a.test", "/", "a", "global-rate-limit: 1000000", "global-rate-limit-window: 1m", byHeader)})
	connections := g.Connections(2, 4)
	load := func() (p99 time.Duration) {
		const requests = 4000
		var took [requests]time.Duration
		err := connections.Each(requests, func(conn *headgatetest.Connection, i int) error {
			start := time.Now()
			response, err := conn.Ask("a.test", "/", fmt.Sprint("X-Client: c", i%500))
			took[i] = time.Since(start)
			if err == nil && response.StatusCode != 200 {
				err = fmt.Errorf("status %d", response.StatusCode)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(took[:])
		return took[requests*99/100]
	}
	is := func(up float64) {
		headgatetest.Eventually(t, fmt.Sprintf("headgate_limit_store_up is %v", up), func() bool {
			load()
			return value(t, g, "headgate_limit_store_up") == up
		})
	}
	is(1)
	with := load()
	store.Kill()
	is(0)
	without := load()
	store.Start()
	is(1)
	back := load()
	t.Logf("99%% of requests took at most %v with the store, %v without it, %v when it was back", with, without, back)
	// Far more than a busy machine adds, and less than a request that would wait for the store.
	for _, p99 := range []time.Duration{without, back} {
		if p99 > 10*with+500*time.Millisecond {
			t.Errorf("99%% of requests took at most %v, with the store %v", p99, with)
		}
	}
}

// A change of an annotation or of the key counts for the next request, and takes no reload.
func TestWindowIsChangedLive(t *testing.T) {
	t.Parallel()
	ingress := func(annotations ...string) string {
		return headgatetest.Ingress("web", "a.test", "/", "a", annotations...)
	}
	const one, day = "global-rate-limit: 1", "global-rate-limit-window: 24h"
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), LimitStore: away, Manifests: backend(t) + headgatetest.Config() + ingress(one, day)})
	before := g.Value(g.Metrics.Reloads)
	ask := func(client string, wants ...int) {
		t.Helper()
		for i, want := range wants {
			if got := g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"X-Client": {client}}}).Status; got != want {
				t.Errorf("request %d of %q: status %d, want %d", i+1, client, got, want)
			}
		}
	}
	ask("", 200, 429, 429)
	g.Apply(headgatetest.Config("global-rate-limit-status-code: 430"))
	ask("", 430)
	g.Apply(headgatetest.Config("global-rate-limit-status-code: 200"))
	ask("", 429)
	g.Apply(ingress("global-rate-limit: 3", day))
	ask("", 200, 200, 429)
	g.Apply(ingress("global-rate-limit: 0", day))
	ask("", 200, 200)
	g.Apply(ingress(one))
	ask("", 200, 200)
	// The window before is another one.
	g.Apply(ingress(one, "global-rate-limit-window: 23h"))
	ask("", 200, 429)
	g.Apply(ingress(one, day, byHeader))
	ask("", 200, 200)
	ask("x", 200, 429)
	ask("y", 200, 429)
	g.Apply(ingress("global-rate-limit: 2", day, "global-rate-limit-key: all of $http_x_client"))
	ask("", 200, 200, 429)
	g.Apply(ingress(one, day, "global-rate-limit-ignored-cidrs: 127.0.0.0/8"))
	ask("", 200, 200)
	g.Apply(ingress(one, day, "global-rate-limit-ignored-cidrs: 192.0.2.0/24"))
	ask("", 429)
	// What the limits of this replica refuse counts in none.
	g.Apply(ingress("global-rate-limit: 2", day, byHeader, "limit-rpm: 1", "limit-burst-multiplier: 0"))
	ask("z", 200, 503, 503)
	g.Apply(ingress("global-rate-limit: 2", day, byHeader))
	ask("z", 200, 429)
	for _, bad := range [][]string{
		{"global-rate-limit: many", day}, {one, "global-rate-limit-window: soon"}, {one, day, "global-rate-limit-key: $nothing"}, {one, day, "global-rate-limit-ignored-cidrs: 10"},
	} {
		g.Apply(ingress(bad...))
		ask("bad", 503, 503)
	}
	g.Apply(ingress())
	ask("", 200, 200)
	if got := g.Value(g.Metrics.Reloads); got != before {
		t.Errorf("%d reloads, before %d", got, before)
	}
}

// A reload keeps what was counted, and without the flag the annotations have no effect.
func TestWindowStays(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	ingress := headgatetest.Ingress("web", "a.test", "/", "a", "global-rate-limit: 1", "global-rate-limit-window: 24h") +
		headgatetest.Ingress("bad", "bad.test", "/", "a", "global-rate-limit: many", "global-rate-limit-window: soon")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), LimitStore: away, Manifests: backend(t) + ingress})
	g.Get("a.test", "/").WantStatus(t, 200)
	g.ApplyReloading(headgatetest.Config("keep-alive-requests: 77"))
	g.Get("a.test", "/").WantStatus(t, 429)
	without := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: backend(t) + ingress})
	for range 3 {
		without.Get("a.test", "/").WantStatus(t, 200)
		without.Get("bad.test", "/").WantStatus(t, 200)
	}
}

// A window slides: of the one before counts what is not yet a window ago.
func TestWindowSlides(t *testing.T) {
	t.Parallel()
	const limit, seconds = 10, 2
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), LimitStore: away, Manifests: backend(t) +
		headgatetest.Ingress("web", "a.test", "/", "a", fmt.Sprint("global-rate-limit: ", limit), fmt.Sprintf("global-rate-limit-window: %ds", seconds))})
	pass := func() bool { return g.Get("a.test", "/").Status == 200 }
	headgatetest.Eventually(t, "the limit is reached", func() bool { return !pass() })
	start := time.Now()
	headgatetest.Eventually(t, "some pass again", pass)
	passed := 1
	for pass() {
		passed++
	}
	// In the window after, one request in each fifth of a second gets room.
	most := 1 + limit*int(1+time.Since(start)/time.Second)/seconds
	if passed > most {
		t.Errorf("%d requests passed %v after the limit was reached, want at most %d", passed, time.Since(start), most)
	}
}
