package e2e_test

import (
	"net/http"
	"testing"
	"time"
)

// What changed while no controller was there is right when the next one says
// that it is ready.
func TestRestart(t *testing.T) {
	g := startGate(t)
	stays, goes, comes := g.host("stays"), g.host("goes"), g.host("comes")
	g.createBackend("one")
	g.createBackend("two")
	g.createSecret("stays", stays)
	g.createIngress(g.ingress("stays", stays, "/", "one", "stays"))
	g.createIngress(g.ingress("goes", goes, "/", "one", ""))
	g.await("https://"+stays+"/", from("one"))
	g.await("http://"+goes+"/", from("one"))

	g.stop()
	if _, err := g.get(t.Context(), "http://"+goes+"/"); err == nil {
		t.Error("without the controller something answers still")
	}
	pair := g.renewSecret("stays", stays)
	g.updateIngress(g.ingress("stays", stays, "/", "two", "stays"))
	g.deleteIngress("goes")
	g.createIngress(g.ingress("comes", comes, "/", "one", ""))
	g.changeEndpoint("one", g.startEndpoint("other"))

	g.start()
	g.awaitReady()
	g.want("https://"+stays+"/", showing(pair, "two"))
	g.want("http://"+goes+"/", status(http.StatusNotFound))
	g.want("http://"+comes+"/", from("other"))
}

// NGINX serves on when the controller is killed, until the next one has taken
// over.
func TestKill(t *testing.T) {
	g := startGate(t)
	host, late := g.host("web"), g.host("late")
	g.createBackend("web")
	g.createIngress(g.ingress("web", host, "/", "web", ""))
	g.await("http://"+host+"/", from("web"))
	l := g.startLoad(host)

	g.kill()
	l.awaitMore(500)
	if _, failures := l.now(); len(failures) > 0 {
		t.Errorf("after the controller's end %d requests failed: %s", len(failures), first(failures))
	}
	g.createIngress(g.ingress("late", late, "/", "web", ""))
	before, _ := l.now()
	began := time.Now()
	g.start()
	g.awaitReady()
	ready := time.Now()
	g.want("http://"+late+"/", from("web"))
	l.awaitMore(500)
	l.end()
	answered, failures := l.now()
	t.Logf("ready after %v", ready.Sub(began).Round(time.Millisecond))
	if len(failures) == 0 {
		t.Logf("none of %d requests failed", answered-before)
		return
	}
	since, until := failures[0].began, failures[0].began
	for _, f := range failures {
		if f.began.Before(since) {
			since = f.began
		}
		if f.began.After(until) {
			until = f.began
		}
	}
	t.Logf("the gap: %d of %d requests failed within %v, the first %v after the start: %s",
		len(failures), answered-before+len(failures), until.Sub(since).Round(time.Millisecond),
		since.Sub(began).Round(time.Millisecond), first(failures))
	if since.Before(began) || until.After(ready) {
		t.Errorf("requests failed from %v to %v; the new controller started at %v and was ready at %v", since, until, began, ready)
	}
	if gap := until.Sub(since); gap > longestGap {
		t.Errorf("the gap was %v, want at most %v", gap, longestGap)
	}
}

// longestGap is some hundred times what it takes on an idle machine.
const longestGap = 10 * time.Second
