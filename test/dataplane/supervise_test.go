package dataplane_test

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

func kill(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// wantBack waits until an NGINX with another memory answers a.test, and fails
// the test if that takes a second or more since it was killed, or if anything
// is missing then.
func wantBack(t *testing.T, g *headgatetest.Instance, before string, killed time.Time, pair headgatetest.KeyPair) (took time.Duration) {
	t.Helper()
	client := g.NewClient(false)
	headgatetest.Eventually(t, "a new NGINX answers", func() bool {
		defer client.CloseIdleConnections()
		r, err := g.Try(client, headgatetest.Request{Host: "a.test"})
		return err == nil && r.Status == 200 && workerOf(t, r.Header).instance != before
	})
	took = time.Since(killed)
	t.Logf("back after %v", took)
	wantEcho(t, g.Get("a.test", "/"), "one")
	wantEcho(t, g.Get("a.test", "/two"), "two")
	wantEcho(t, g.Get("profile.test", "/"), "one")
	g.Get("none.test", "/").WantStatus(t, 404)
	wantShown(t, g, "b.test", pair)
	return took
}

// An NGINX that is killed is back soon with everything, whether its workers outlive it or not. A busy machine may
// take longer once.
func TestKilledNGINXIsBack(t *testing.T) {
	headgatetest.Long(t)
	pair := headgatetest.NewKeyPair(t, "b.test", "b.test")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: headgatetest.Hasty(), Features: namingWorkers(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + served("two", headgatetest.StartEcho(t, "two")) +
			headgatetest.Ingress("a", "a.test", "/", "one") + headgatetest.Ingress("a2", "a.test", "/two", "two") +
			headgatetest.TLSSecret("b", pair) + headgatetest.WithTLS(headgatetest.Ingress("b", "b.test", "/", "one"), "b b.test")})
	// Known profiles must survive, too.
	g.Apply(headgatetest.Ingress("p", "profile.test", "/", "one", "proxy-body-size: 3m"))
	var refused atomic.Int64
	l := startLoad(t, 4, func(int) func() error {
		return func() error {
			client := g.NewClient(false)
			defer client.CloseIdleConnections()
			r, err := g.Try(client, headgatetest.Request{Host: "a.test"})
			switch {
			case err != nil:
				refused.Add(1)
				time.Sleep(time.Millisecond)
				return nil
			case r.Status == 503 && r.Header.Get("Retry-After") != "":
				return nil
			}
			return wantOK(r.Status)
		}
	})
	quickest := time.Hour
	for n, step := range []struct {
		name string
		kill func(master int) (pid int)
	}{
		{"the master", func(master int) int { return master }},
		// The socket file is left, and no process listens on it.
		{"the master and its workers", func(master int) int { return -master }},
	} {
		before, master := g.State().Instance, g.Process.PID()
		killed := time.Now()
		kill(t, step.kill(master), syscall.SIGKILL)
		quickest = min(quickest, wantBack(t, g, before, killed, pair))
		headgatetest.Eventually(t, "the restart is counted", func() bool { return g.Value(g.Metrics.Restarts) == n+1 })
		if t.Failed() {
			t.Fatalf("failed when %s was killed", step.name)
		}
	}
	// Half a second, and several on a machine that is busy with other tests.
	if limit := 5 * time.Second; quickest >= limit {
		t.Errorf("NGINX was back after %v, want less than %v", quickest, limit)
	}
	t.Logf("%d connections were refused", refused.Load())
	l.wantNoneWrong(t, 50)
	// It goes on as before.
	g.Apply(headgatetest.Ingress("new", "new.test", "/", "two", "proxy-body-size: 8m"))
	wantEcho(t, g.Get("new.test", "/"), "two")
}

// NGINX dies while a reload is on its way: the new profile gets there anyway.
func TestKilledDuringAReload(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	timing := headgatetest.Hasty()
	timing.Drain = 500 * time.Millisecond
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: timing,
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one")})
	g.Put(headgatetest.Ingress("p", "profile.test", "/", "one", "proxy-body-size: 3m"))
	headgatetest.Eventually(t, "connections are drained", func() bool { return g.State().Draining })
	kill(t, -g.Process.PID(), syscall.SIGKILL)
	headgatetest.Eventually(t, "NGINX is restarted", func() bool { return g.Value(g.Metrics.Restarts) == 1 })
	g.WaitSynced()
	wantEcho(t, g.Get("profile.test", "/"), "one")
	wantEcho(t, g.Get("a.test", "/"), "one")
	if g.State().Draining {
		t.Error("connections are still drained")
	}
}

// A worker that is killed costs its own connections, and no later reload waits
// for it.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	timing := headgatetest.Hasty()
	timing.WorkerTimeout = 20 * time.Second
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: timing, Features: namingWorkers(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one")})
	victim := workerOf(t, g.Get("a.test", "/").Header).pid
	accepting := func() (pids []int) {
		for _, w := range g.State().Accepting {
			pids = append(pids, w.PID)
		}
		return pids
	}
	headgatetest.Eventually(t, "both workers accept", func() bool { return len(accepting()) == 2 })
	kill(t, victim, syscall.SIGKILL)
	headgatetest.Eventually(t, "another takes its place", func() bool { return len(accepting()) == 3 })
	if !slices.Contains(accepting(), victim) {
		t.Fatal("the killed worker took itself off the list, so this shows nothing")
	}
	for range 20 {
		wantEcho(t, g.Get("a.test", "/"), "one")
	}
	began := time.Now()
	reload(t, g)
	if took := time.Since(began); took > timing.WorkerTimeout/2 {
		t.Errorf("the reload took %v: it waited for the dead worker", took)
	}
	for range 20 {
		r := g.Get("a.test", "/")
		wantEcho(t, r, "one")
		if w := workerOf(t, r.Header); w.generation != 2 {
			t.Errorf("generation %d answers, want 2", w.generation)
		}
	}
	if n := g.Value(g.Metrics.Restarts); n != 0 {
		t.Errorf("NGINX was restarted %d times for a worker", n)
	}
}

// poisoning are the real features and one whose annotation makes a profile
// that NGINX refuses.
func poisoning() []feature.Feature {
	poison := feature.Setting[bool]{Annotation: "poison", Parse: feature.Bool}
	return append(all.Features(), feature.Feature{
		Name: "poison", Settings: []feature.AnySetting{poison},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if poison.Get(v) {
				out.Route.Profile = out.Route.Profile.With(model.ProfileValue{Name: "buffers", Number: 1})
			}
		},
	})
}

// A configuration that NGINX refuses is only reported, changes nothing, and does
// not hold up what needs no reload.
func TestRefusedConfiguration(t *testing.T) {
	t.Parallel()
	timing := edge.Timing{Drain: time.Millisecond, ReloadInterval: 50 * time.Millisecond, WorkerTimeout: 10 * time.Second, Unbounded: true}
	one := headgatetest.StartEcho(t, "one")
	reloads := make(chan error, 100)
	g := headgatetest.Start(t, headgatetest.Options{Features: poisoning(), Timing: &timing,
		Reloaded: func(err error) { reloads <- err },
		Manifests: served("one", one) + served("two", headgatetest.StartEcho(t, "two")) + headgatetest.Ingress("a", "a.test", "/", "one") +
			headgatetest.Ingress("bad", "bad.test", "/", "one") + headgatetest.Ingress("gone", "gone.test", "/", "two")})
	conf, err := os.ReadFile(g.RunDir.Conf())
	if err != nil {
		t.Fatal(err)
	}
	before := g.State()

	g.Put(headgatetest.Ingress("bad", "bad.test", "/", "two", "poison: true") + headgatetest.Ingress("worse", "worse.test", "/", "two", "poison: true"))
	headgatetest.Eventually(t, "NGINX has refused twice", func() bool { return g.Value(g.Metrics.ReloadFailures) >= 2 })
	lines := slices.Collect(strings.Lines(g.Log.String()))
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.Contains(line, "NGINX keeps its configuration") && strings.Contains(line, "there must be at least 2")
	}) {
		t.Error("the log does not say why NGINX refused")
	}
	now, err := os.ReadFile(g.RunDir.Conf())
	if err != nil {
		t.Fatal(err)
	}
	if state := g.State(); string(now) != string(conf) || state.Generation != before.Generation || state.Instance != before.Instance || state.Draining {
		t.Errorf("the configuration or the state changed, to %+v", state)
	}
	// The hosts are served with what NGINX has.
	wantEcho(t, g.Get("bad.test", "/"), "two")
	wantEcho(t, g.Get("worse.test", "/"), "two")

	wantLastReload(t, g, 0)

	g.Put(headgatetest.Ingress("a", "a.test", "/", "two") + headgatetest.Ingress("new", "new.test", "/", "one"))
	for _, host := range []string{"a.test two", "new.test one"} {
		name, backend, _ := strings.Cut(host, " ")
		headgatetest.Eventually(t, name+" is served by "+backend, func() bool {
			r := g.Get(name, "/")
			return r.Echo != nil && r.Echo.Backend == backend
		})
	}
	g.Remove(headgatetest.Ingress("gone", "gone.test", "/", "two"))
	headgatetest.Eventually(t, "a deleted host is gone", func() bool { return g.Get("gone.test", "/").Status == 404 })
	wantEcho(t, g.Get("bad.test", "/"), "two")

	// Mended with a profile that NGINX takes, and with one that it has.
	g.Apply(headgatetest.Ingress("bad", "bad.test", "/", "two", "proxy-body-size: 3m") + headgatetest.Ingress("worse", "worse.test", "/", "two"))
	wantEcho(t, g.Get("bad.test", "/"), "two")
	wantEcho(t, g.Get("worse.test", "/"), "two")
	if n := g.Value(g.Metrics.Reloads); n != 1 {
		t.Errorf("%d reloads, want 1", n)
	}
	wantLastReload(t, g, 1)
	for range int(g.Value(g.Metrics.ReloadFailures)) {
		if err := <-reloads; err == nil || !strings.Contains(err.Error(), "there must be at least 2") {
			t.Errorf("a failure is reported as %v", err)
		}
	}
	if err := <-reloads; err != nil || len(reloads) > 0 {
		t.Errorf("the reload is reported as %v, and %d more", err, len(reloads))
	}
}

// wantLastReload compares ingress-nginx's metric of the last reload.
func wantLastReload(t *testing.T, g *headgatetest.Instance, want float64) {
	t.Helper()
	families, err := g.Metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "nginx_ingress_controller_config_last_reload_successful" {
			if got := f.GetMetric()[0].GetGauge().GetValue(); got != want {
				t.Errorf("%s is %v, want %v", f.GetName(), got, want)
			}
			return
		}
	}
	t.Error("there is no metric of the last reload")
}

// What was refused often is not tried often, but what mends it is tried soon.
func TestMendedConfigurationIsTriedSoon(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	timing := edge.Timing{Drain: time.Millisecond, ReloadInterval: time.Second, WorkerTimeout: 10 * time.Second, Unbounded: true}
	g := headgatetest.Start(t, headgatetest.Options{Features: poisoning(), Timing: &timing, Manifests: served("one", headgatetest.StartEcho(t, "one"))})
	g.Put(headgatetest.Ingress("bad", "bad.test", "/", "one", "poison: true"))
	headgatetest.Eventually(t, "NGINX has refused three times", func() bool { return g.Value(g.Metrics.ReloadFailures) == 3 })
	// The next try is 8 × 1 s away.
	began := time.Now()
	g.Apply(headgatetest.Ingress("bad", "bad.test", "/", "one", "proxy-body-size: 3m"))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("what was mended took %v", took)
	}
	wantEcho(t, g.Get("bad.test", "/"), "one")
	if n := g.Value(g.Metrics.ReloadFailures); n != 3 {
		t.Errorf("%d refusals, want 3", n)
	}
}
