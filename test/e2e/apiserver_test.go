package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// The API server's absence is not noticed by clients, and its return costs what
// has changed and nothing more.
func TestAPIServerStopped(t *testing.T) {
	g, host := startServing(t)
	other := g.startEndpoint("other")
	l := g.startLoad(host)
	before := g.work()

	back := g.withoutAPIServer(g.cluster.StopAPIServer, g.cluster.StartAPIServer)
	g.awaitLog("the API server does not answer", "Headgate serves the last known state")
	l.awaitMore(500)
	if err := g.health(t.Context()); err != nil {
		t.Errorf("without the API server: %v", err)
	}
	back()
	began := time.Now()
	// What comes late is of every resource that is followed.
	late, class := g.host("late"), g.class+"-late"
	g.createClass(class, controllerClass(g.class))
	g.createBackend("late")
	ing := g.ingress("late", late, "/", "late", "")
	ing.Spec.IngressClassName = &class
	g.createIngress(ing)
	g.changeEndpoint("web", other)
	pair := g.renewSecret("secured", g.host("secured"))
	g.await("http://"+late+"/", from("late"))
	g.await("http://"+host+"/", from("other"))
	g.await("https://"+g.host("secured")+"/", showing(pair, "other"))
	took := time.Since(began)
	t.Logf("served %v after the return", took.Round(time.Millisecond))
	if took > soon {
		t.Errorf("served %v after the return, want at most %v", took, soon)
	}
	g.awaitLog("the API server answers again")
	l.awaitMore(100)
	l.wantNoFailure()
	g.wantLateWork(before)
}

// wantLateWork fails the test unless no more was pushed than what came late.
func (g *gate) wantLateWork(before counts) {
	g.t.Helper()
	clustertest.Eventually(g.t, patience, func(context.Context) error {
		done := g.work()
		for kind, most := range map[string]int{
			"host": 1, "name": 2, "certificate": 2,
			// The changed one, and the late one up to three times, since its
			// Ingress, its Service and its endpoints come in any order.
			"backend": 4,
		} {
			if n := done[sent(kind)] - before[sent(kind)]; n < 1 || n > most {
				return fmt.Errorf("%d units of the kind %s were pushed, want 1 to %d", n, kind, most)
			}
		}
		return nil
	})
}

// withoutAPIServer takes the API server away until back is called, at the end of
// the test at the latest.
func (g *gate) withoutAPIServer(away, again func(context.Context) error) (back func()) {
	g.t.Helper()
	if err := away(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	isBack := false
	back = func() {
		g.t.Helper()
		if isBack {
			return
		}
		isBack = true
		// At the end of the test its own context is done.
		if err := again(context.Background()); err != nil {
			g.t.Fatal(err)
		}
	}
	g.t.Cleanup(back)
	return back
}

// startServing starts Headgate with two hosts on the Service web, of which it
// returns the first, and some that nothing happens to.
func startServing(t *testing.T) (*gate, string) {
	t.Helper()
	g := startGate(t)
	g.createBackend("web")
	for number := range 10 {
		name := fmt.Sprintf("quiet-%d", number)
		g.createService(name)
		g.createIngress(g.ingress(name, g.host(name), "/", name, ""))
	}
	host, secured := g.host("web"), g.host("secured")
	pair := g.createSecret("secured", secured)
	g.createIngress(g.ingress("web", host, "/", "web", ""))
	g.createIngress(g.ingress("secured", secured, "/", "web", "secured"))
	g.await("http://"+host+"/", from("web"))
	g.await("https://"+secured+"/", showing(pair, "web"))
	return g, host
}

// A frozen API server keeps its connections and says nothing.
func TestAPIServerFrozen(t *testing.T) {
	g, host := startServing(t)
	other := g.startEndpoint("other")
	l := g.startLoad(host)
	before := g.work()

	back := g.withoutAPIServer(g.cluster.PauseAPIServer, g.cluster.ResumeAPIServer)
	// A change that is asked for now is made when the API server goes on.
	made := make(chan error, 1)
	go func() { made <- g.tryChangeEndpoint(t.Context(), "web", other) }()
	l.awaitMore(1000)
	if err := g.health(t.Context()); err != nil {
		t.Errorf("while the API server is frozen: %v", err)
	}
	g.want("http://"+host+"/", from("web"))
	back()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	g.await("http://"+host+"/", from("other"))
	l.wantNoFailure()
	g.wantWork(before, counts{built("backend"): 1, sent("backend"): 1})
}

// So long frozen that its connections are given up: watches break, and go on.
func TestAPIServerFrozenForLong(t *testing.T) {
	g := newGate(t)
	g.createClass(g.class, controllerClass(g.class))
	// How long client-go takes to give up a connection.
	g.env = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=1", "HTTP2_PING_TIMEOUT_SECONDS=1"}
	g.start()
	g.awaitReady()
	host := g.host("web")
	g.createBackend("web")
	g.createIngress(g.ingress("web", host, "/", "web", ""))
	g.await("http://"+host+"/", from("web"))
	l := g.startLoad(host)
	before := g.work()

	back := g.withoutAPIServer(g.cluster.PauseAPIServer, g.cluster.ResumeAPIServer)
	g.awaitLog("the API server does not answer", "Headgate serves the last known state")
	back()
	g.changeEndpoint("web", g.startEndpoint("other"))
	g.await("http://"+host+"/", from("other"))
	g.awaitLog("the API server answers again")
	l.wantNoFailure()
	g.wantWork(before, counts{built("backend"): 1, sent("backend"): 1})
}

// The API server is restored from an older snapshot: versions of objects that
// the controller has seen are in the future now, so that no watch can tell what
// has changed.
func TestRestoredFromSnapshot(t *testing.T) {
	g, host := startServing(t)
	goes, comes, moves := g.host("goes"), g.host("comes"), g.host("moves")
	g.createBackend("one")
	g.createBackend("two")
	old := g.createSecret("moves", moves)
	g.createIngress(g.ingress("goes", goes, "/", "one", ""))
	g.createIngress(g.ingress("moves", moves, "/", "one", "moves"))
	g.await("http://"+goes+"/", from("one"))
	g.await("https://"+moves+"/", showing(old, "one"))
	if err := g.cluster.Snapshot(t.Context(), "e2e"); err != nil {
		t.Fatal(err)
	}
	fresh := g.renewSecret("moves", moves)
	g.updateIngress(g.ingress("moves", moves, "/", "two", "moves"))
	g.deleteIngress("goes")
	g.createIngress(g.ingress("comes", comes, "/", "one", ""))
	g.await("https://"+moves+"/", showing(fresh, "two"))
	g.await("http://"+goes+"/", status(http.StatusNotFound))
	g.await("http://"+comes+"/", from("one"))
	l := g.startLoad(host)
	before := g.work()

	if err := g.cluster.Restore(t.Context(), "e2e"); err != nil {
		t.Fatal(err)
	}
	g.await("http://"+goes+"/", from("one"))
	g.await("https://"+moves+"/", showing(old, "one"))
	g.await("http://"+comes+"/", status(http.StatusNotFound))
	g.createIngress(g.ingress("after", g.host("after"), "/", "two", ""))
	g.await("http://"+g.host("after")+"/", from("two"))
	l.awaitMore(100)
	l.wantNoFailure()
	done := g.work()
	for _, name := range []string{built("host"), sent("host")} {
		// goes, moves, comes and after; never what stayed as it was.
		if n := done[name] - before[name]; n != 4 {
			t.Errorf("%s grew by %d, want 4", name, n)
		}
	}
	g.wantNoReload()
}

// A controller that starts without an API server waits for it, and is not ready
// before it has all there is.
func TestControllerStartsWhileAPIServerIsAway(t *testing.T) {
	g, host := startServing(t)
	g.stop()
	back := g.withoutAPIServer(g.cluster.StopAPIServer, g.cluster.StartAPIServer)
	g.start()
	g.awaitLog("the API server does not answer", "Headgate serves nothing until this is resolved")
	g.awaitNotReady()
	back()
	g.awaitReady()
	g.want("http://"+host+"/", from("web"))
}
