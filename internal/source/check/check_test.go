package check

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/source"
)

// A following is a Source that runs, and what it delivered last.
type following struct {
	*Source
	mu     sync.Mutex
	health map[string]*source.Health
	times  int
}

func start(t *testing.T, settings Settings) *following {
	t.Helper()
	settings.Log = slog.New(slog.DiscardHandler)
	f := &following{Source: New(settings), health: map[string]*source.Health{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.Run(ctx, f.take)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

func (f *following) take(_ context.Context, changes []source.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, change := range changes {
		f.times++
		if o := change.Object.(*source.Health); change.Deleted {
			delete(f.health, o.Name)
		} else {
			f.health[o.Name] = o
		}
	}
}

// unhealthy are the endpoints of a backend, and why.
func (f *following) unhealthyOf(backend string) map[netip.AddrPort]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := map[netip.AddrPort]string{}
	if o := f.health[backend]; o != nil {
		for _, u := range o.Unhealthy {
			list[u.Address] = u.Why
		}
	}
	return list
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// quick makes a Source that may check as often as it is asked to.
var quick = Settings{SlotTime: time.Microsecond, Pace: time.Microsecond}

// often is a check that is made all the time. No machine is so slow that it times out.
func often(path string) source.HealthCheck {
	return source.HealthCheck{Target: path, Interval: time.Millisecond, Timeout: time.Minute, Unhealthy: 2, Healthy: 2}
}

func addressOf(server *httptest.Server) netip.AddrPort {
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

// TestFlips: an endpoint is unhealthy while its checks fail, and others stay as they are. A
// check of other settings begins again, and at once.
func TestFlips(t *testing.T) {
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(int(status.Load()))
		}
	}))
	defer server.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	f := start(t, quick)
	endpoints := []netip.AddrPort{addressOf(server), addressOf(other)}
	slices.SortFunc(endpoints, netip.AddrPort.Compare)
	checked := source.Checked{Backend: "a/web/80", Namespace: "a", Endpoints: endpoints, Check: often("/healthz")}
	f.Subscribe(checked)
	for range 3 {
		eventually(t, "only the other one is unhealthy", func() bool {
			list := f.unhealthyOf("a/web/80")
			return len(list) == 1 && list[addressOf(other)] == "GET /healthz: status 404, 2 times in a row"
		})
		status.Store(http.StatusInternalServerError)
		eventually(t, "both are unhealthy", func() bool {
			list := f.unhealthyOf("a/web/80")
			return len(list) == 2 && list[addressOf(server)] == "GET /healthz: status 500, 2 times in a row"
		})
		status.Store(http.StatusOK)
	}
	checked.Check.Target, checked.Check.Interval = "/", time.Hour
	f.Subscribe(checked)
	eventually(t, "what another check said counts no longer", func() bool { return len(f.unhealthyOf("a/web/80")) == 0 })
	if state := f.State(); state.Succeeded == 0 || state.Failed == 0 || len(state.Services) != 1 || state.Services[0] != (ServiceState{"a", "web", 2, 0}) {
		t.Errorf("the state is %+v", state)
	}
}

// TestEnd: what no backend has any more is not checked any more, and leaves nothing behind.
func TestEnd(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	f := start(t, quick)
	one := source.Checked{Backend: "a/web/80", Namespace: "a", Endpoints: []netip.AddrPort{addressOf(server)}, Check: often("/")}
	two, foreign := one, one
	two.Backend, foreign.Backend, foreign.Namespace = "a/web/http", "b/web/80", "b"
	for _, c := range []source.Checked{one, two, foreign, two} {
		f.Subscribe(c)
	}
	if len(f.users) != 2 {
		t.Errorf("%d targets: each namespace has one", len(f.users))
	}
	unhealthy := func(backend string) func() bool {
		return func() bool { return len(f.unhealthyOf(backend)) == 1 }
	}
	for _, c := range []source.Checked{one, two, foreign} {
		eventually(t, c.Backend+" has an unhealthy endpoint", unhealthy(c.Backend))
	}
	if state := f.State(); len(state.Services) != 2 || state.Services[0].Unhealthy != 1 || state.Services[1].Checked != 1 {
		t.Errorf("the state is %+v", state)
	}
	end := func(c source.Checked) { f.Subscribe(source.Checked{Backend: c.Backend, Namespace: c.Namespace}) }
	end(one)
	eventually(t, "one is gone", func() bool { return len(f.unhealthyOf(one.Backend)) == 0 })
	if !unhealthy(two.Backend)() {
		t.Error("the endpoint of the other backend is forgotten")
	}
	before := requests.Load()
	eventually(t, "the endpoint of the other backend is checked", func() bool { return requests.Load() > before+3 })
	end(two)
	end(foreign)
	end(foreign)
	eventually(t, "all are gone", func() bool { return len(f.unhealthyOf(two.Backend))+len(f.unhealthyOf(foreign.Backend)) == 0 })
	f.Source.mu.Lock()
	defer f.Source.mu.Unlock()
	if len(f.users)+len(f.backends)+len(f.unhealthy) != 0 {
		t.Errorf("left: %v, %v, %v", f.users, f.backends, f.unhealthy)
	}
}

// TestCount: only as many results in a row count as the thresholds say.
func TestCount(t *testing.T) {
	c := &checks{source: New(quick), target: target{check: source.HealthCheck{Unhealthy: 3, Healthy: 2}}}
	var states strings.Builder
	for _, result := range "..xx.xxxx.x..x.xx..xxx.." {
		err := errors.New("GET /: status 500")
		if result == '.' {
			err = nil
		}
		was := c.why
		if flips := c.count(err); flips != (was != c.why) {
			t.Fatalf("%v, though it was %q and is %q", flips, was, c.why)
		}
		states.WriteByte("+-"[min(len(c.why), 1)])
	}
	if want := "+++++++-----+++++++++--+"; states.String() != want {
		t.Errorf("got  %s\nwant %s", states.String(), want)
	}
	c.target.check.Unhealthy = 1
	if c.count(errors.New("GET /: status 500")); c.why != "GET /: status 500" {
		t.Errorf("got %q", c.why)
	}
}

// TestPace: endpoints that change all the time cost the controller one change of the backend in
// a while, and the last change counts.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, Settings{})
		at := netip.MustParseAddrPort("192.0.2.1:80")
		check := source.HealthCheck{Interval: 100 * time.Hour}
		f.Subscribe(source.Checked{Backend: "a/web/80", Namespace: "a", Endpoints: []netip.AddrPort{at}, Check: check})
		begun := time.Now()
		for i := range 1000 {
			f.changed(&result{target: target{"a", at, check}, why: strings.Repeat("x", i%2)}, false)
			time.Sleep(10 * time.Millisecond)
		}
		f.changed(&result{target: target{"a", at, check}, why: "last"}, false)
		time.Sleep(2 * pace)
		synctest.Wait()
		f.mu.Lock()
		times := f.times
		f.mu.Unlock()
		if most := int(time.Since(begun)/pace) + 1; times > most || times < 2 {
			t.Errorf("delivered %d times, want at most %d", times, most)
		}
		if list := f.unhealthyOf("a/web/80"); list[at] != "last" {
			t.Errorf("in the end: %v", list)
		}
	})
}

// TestSpread: checks that come at the same time are not made at the same time, and one that is
// quick takes its slot for a while.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 100 {
			c := &checks{source: New(quick), target: target{check: source.HealthCheck{Interval: time.Hour}}}
			first, known := c.Known()
			if !known || first.Pause <= 0 || first.Pause > time.Hour+1 {
				t.Fatalf("the first check is made after %v", first.Pause)
			}
			seen[first.Pause.Round(time.Minute)] = true
			if _, known = c.Known(); known {
				t.Fatal("it is never made")
			}
			if p := c.pause(); p < 54*time.Minute || p > 66*time.Minute {
				t.Fatalf("the second one is made after %v", p)
			}
		}
		if len(seen) < 10 {
			t.Errorf("100 checks are made at %d times", len(seen))
		}
	})
}
