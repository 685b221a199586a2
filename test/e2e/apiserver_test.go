package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// Clients don't notice that the API server is away. When it is back, only what
// has changed is pushed.
func TestAPIServerStopped(t *testing.T) {
	h, host := startServing(t)
	other := h.startEndpoint("other")
	l := h.startLoad(host)
	before := h.work()

	back := h.withoutAPIServer(h.cluster.StopAPIServer, h.cluster.StartAPIServer)
	h.awaitLog("the API server does not answer", "Headgate serves the last known state")
	l.awaitMore(500)
	if err := h.health(t.Context()); err != nil {
		t.Errorf("without the API server: %v", err)
	}
	back()
	began := time.Now()
	// One object of every watched resource is late.
	late, class := h.host("late"), h.class+"-late"
	h.createClass(class, controllerClass(h.class))
	h.createBackend("late")
	ing := h.ingress("late", late, "/", "late", "")
	ing.Spec.IngressClassName = &class
	h.createIngress(ing)
	h.changeEndpoint("web", other)
	pair := h.renewSecret("secured", h.host("secured"))
	h.await("http://"+late+"/", from("late"))
	h.await("http://"+host+"/", from("other"))
	h.await("https://"+h.host("secured")+"/", showing(pair, "other"))
	took := time.Since(began)
	t.Logf("served %v after the return", took.Round(time.Millisecond))
	if took > soon {
		t.Errorf("served %v after the return, want at most %v", took, soon)
	}
	h.awaitLog("the API server answers again")
	l.awaitMore(100)
	l.wantNoFailure()
	h.wantLateWork(before)
}

// wantLateWork fails the test unless no more was pushed than what came late.
func (h *headgate) wantLateWork(before counts) {
	h.t.Helper()
	clustertest.Eventually(h.t, timeout, func(context.Context) error {
		done := h.work()
		for kind, limit := range map[string]int{
			"host": 1, "name": 2, "certificate": 2,
			// The changed one, and the late one up to three times, since its
			// Ingress, its Service and its endpoints come in any order.
			"backend": 4,
		} {
			if n := done[sent(kind)] - before[sent(kind)]; n < 1 || n > limit {
				return fmt.Errorf("%d units of the kind %s were pushed, want 1 to %d", n, kind, limit)
			}
		}
		return nil
	})
}

// withoutAPIServer takes the API server away until back is called, at the end of
// the test at the latest.
func (h *headgate) withoutAPIServer(away, again func(context.Context) error) (back func()) {
	h.t.Helper()
	if err := away(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	isBack := false
	back = func() {
		h.t.Helper()
		if isBack {
			return
		}
		isBack = true
		// At the end of the test its own context is done.
		if err := again(context.Background()); err != nil {
			h.t.Fatal(err)
		}
	}
	h.t.Cleanup(back)
	return back
}

// startServing starts Headgate with two hosts on the Service web, the first of
// which it returns, and some hosts that never change.
func startServing(t *testing.T) (*headgate, string) {
	t.Helper()
	h := startHeadgate(t)
	h.createBackend("web")
	for number := range 10 {
		name := fmt.Sprintf("quiet-%d", number)
		h.createService(name)
		h.createIngress(h.ingress(name, h.host(name), "/", name, ""))
	}
	host, secured := h.host("web"), h.host("secured")
	pair := h.createSecret("secured", secured)
	h.createIngress(h.ingress("web", host, "/", "web", ""))
	h.createIngress(h.ingress("secured", secured, "/", "web", "secured"))
	h.await("http://"+host+"/", from("web"))
	h.await("https://"+secured+"/", showing(pair, "web"))
	return h, host
}

// A frozen API server keeps its connections and answers nothing.
func TestAPIServerFrozen(t *testing.T) {
	h, host := startServing(t)
	other := h.startEndpoint("other")
	l := h.startLoad(host)
	before := h.work()

	back := h.withoutAPIServer(h.cluster.PauseAPIServer, h.cluster.ResumeAPIServer)
	// A change that is sent now is made when the API server resumes.
	made := make(chan error, 1)
	go func() { made <- h.tryChangeEndpoint(t.Context(), "web", other) }()
	l.awaitMore(1000)
	if err := h.health(t.Context()); err != nil {
		t.Errorf("while the API server is frozen: %v", err)
	}
	h.want("http://"+host+"/", from("web"))
	back()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	h.await("http://"+host+"/", from("other"))
	l.wantNoFailure()
	h.wantWork(before, counts{built("backend"): 1, sent("backend"): 1})
}

// The API server is frozen until clients close their connections: watches break
// and are started again.
func TestAPIServerFrozenForLong(t *testing.T) {
	h := newHeadgate(t)
	h.createClass(h.class, controllerClass(h.class))
	// How long client-go takes to close a dead connection.
	h.env = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=1", "HTTP2_PING_TIMEOUT_SECONDS=1"}
	h.start()
	h.awaitReady()
	host := h.host("web")
	h.createBackend("web")
	h.createIngress(h.ingress("web", host, "/", "web", ""))
	h.await("http://"+host+"/", from("web"))
	l := h.startLoad(host)
	before := h.work()

	back := h.withoutAPIServer(h.cluster.PauseAPIServer, h.cluster.ResumeAPIServer)
	h.awaitLog("the API server does not answer", "Headgate serves the last known state")
	back()
	h.changeEndpoint("web", h.startEndpoint("other"))
	h.await("http://"+host+"/", from("other"))
	h.awaitLog("the API server answers again")
	l.wantNoFailure()
	h.wantWork(before, counts{built("backend"): 1, sent("backend"): 1})
}

// The API server is restored from an older snapshot: the controller has seen
// newer versions of objects, so no watch can report what has changed.
func TestRestoredFromSnapshot(t *testing.T) {
	h, host := startServing(t)
	goes, comes, moves := h.host("goes"), h.host("comes"), h.host("moves")
	h.createBackend("one")
	h.createBackend("two")
	old := h.createSecret("moves", moves)
	h.createIngress(h.ingress("goes", goes, "/", "one", ""))
	h.createIngress(h.ingress("moves", moves, "/", "one", "moves"))
	h.await("http://"+goes+"/", from("one"))
	h.await("https://"+moves+"/", showing(old, "one"))
	if err := h.cluster.Snapshot(t.Context(), "e2e"); err != nil {
		t.Fatal(err)
	}
	fresh := h.renewSecret("moves", moves)
	h.updateIngress(h.ingress("moves", moves, "/", "two", "moves"))
	h.deleteIngress("goes")
	h.createIngress(h.ingress("comes", comes, "/", "one", ""))
	h.await("https://"+moves+"/", showing(fresh, "two"))
	h.await("http://"+goes+"/", status(http.StatusNotFound))
	h.await("http://"+comes+"/", from("one"))
	l := h.startLoad(host)
	before := h.work()

	if err := h.cluster.Restore(t.Context(), "e2e"); err != nil {
		t.Fatal(err)
	}
	h.await("http://"+goes+"/", from("one"))
	h.await("https://"+moves+"/", showing(old, "one"))
	h.await("http://"+comes+"/", status(http.StatusNotFound))
	h.createIngress(h.ingress("after", h.host("after"), "/", "two", ""))
	h.await("http://"+h.host("after")+"/", from("two"))
	l.awaitMore(100)
	l.wantNoFailure()
	done := h.work()
	for _, name := range []string{built("host"), sent("host")} {
		// goes, moves, comes and after, and no host that did not change.
		if n := done[name] - before[name]; n != 4 {
			t.Errorf("%s grew by %d, want 4", name, n)
		}
	}
	h.wantNoReload()
}

// A controller that starts without an API server waits for it, and is not ready
// until it has all objects.
func TestControllerStartsWhileAPIServerIsAway(t *testing.T) {
	h, host := startServing(t)
	h.stop()
	// No pod starts now.
	h.account = ""
	h.asProcess()
	back := h.withoutAPIServer(h.cluster.StopAPIServer, h.cluster.StartAPIServer)
	h.start()
	h.awaitLog("the API server does not answer", "Headgate serves nothing until this is resolved")
	h.awaitNotReady()
	back()
	h.awaitReady()
	h.want("http://"+host+"/", from("web"))
}
