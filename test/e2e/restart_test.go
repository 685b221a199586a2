package e2e_test

import (
	"net/http"
	"testing"
	"time"
)

// Changes from the time without a controller are served once the next one is
// ready.
func TestRestart(t *testing.T) {
	h := startHeadgate(t)
	stays, goes, comes := h.host("stays"), h.host("goes"), h.host("comes")
	h.createBackend("one")
	h.createBackend("two")
	h.createSecret("stays", stays)
	h.createIngress(h.ingress("stays", stays, "/", "one", "stays"))
	h.createIngress(h.ingress("goes", goes, "/", "one", ""))
	h.await("https://"+stays+"/", from("one"))
	h.await("http://"+goes+"/", from("one"))

	h.stop()
	if _, err := h.get(t.Context(), "http://"+goes+"/"); err == nil {
		t.Error("without the controller, requests are still answered")
	}
	pair := h.renewSecret("stays", stays)
	h.updateIngress(h.ingress("stays", stays, "/", "two", "stays"))
	h.deleteIngress("goes")
	h.createIngress(h.ingress("comes", comes, "/", "one", ""))
	h.changeEndpoint("one", h.startEndpoint("other"))

	h.start()
	h.awaitReady()
	h.want("https://"+stays+"/", showing(pair, "two"))
	h.want("http://"+goes+"/", status(http.StatusNotFound))
	h.want("http://"+comes+"/", from("other"))
}

// NGINX continues to serve when the controller is killed, until the next one
// takes over.
func TestKill(t *testing.T) {
	h := newHeadgate(t)
	// A container ends with its controller.
	h.asProcess()
	h.createClass(h.class, controllerClass(h.class))
	h.start()
	h.awaitReady()
	host, late := h.host("web"), h.host("late")
	h.createBackend("web")
	h.createIngress(h.ingress("web", host, "/", "web", ""))
	h.await("http://"+host+"/", from("web"))
	l := h.startLoad(host)

	h.kill()
	l.awaitMore(500)
	if _, failures := l.now(); len(failures) > 0 {
		t.Errorf("after the controller's end %d requests failed: %s", len(failures), first(failures))
	}
	h.createIngress(h.ingress("late", late, "/", "web", ""))
	before, _ := l.now()
	began := time.Now()
	h.start()
	h.awaitReady()
	ready := time.Now()
	h.want("http://"+late+"/", from("web"))
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

// longestGap is about a hundred times the gap on an idle machine.
const longestGap = 10 * time.Second
