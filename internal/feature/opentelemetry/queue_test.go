package opentelemetry_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// No span is lost at a reload, nor when the workers of one end.
func TestReload(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := start(t, "")
	s := spansOf(t, g)
	const each = 150
	sent := 0
	for i := range 4 {
		for range each {
			g.Get("a.test", "/").WantStatus(t, 200)
			sent++
		}
		g.ApplyReloading(headgatetest.Config(collector, on, fmt.Sprintf("worker-shutdown-timeout: %ds", 10+i)))
	}
	headgatetest.Eventually(t, fmt.Sprintf("%d spans", 2*sent), func() bool {
		s.take()
		return len(s.list) >= 2*sent
	})
	if len(s.list) != 2*sent || s.dropped != 0 {
		t.Errorf("%d spans of %d requests, %d dropped", len(s.list), sent, s.dropped)
	}
}

// What finds no room is dropped and counted, and no request waits for it: neither many spans do that are
// small, nor few that are large.
func TestQueue(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"10", "100000"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			checkQueue(t, "otel-max-queuesize: "+size)
		})
	}
}

func checkQueue(t *testing.T, key string) {
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 1, Timing: headgatetest.Hasty(),
		Manifests: served("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "a.test", "/", "a") + headgatetest.Config(key, collector, on),
	})
	s := spansOf(t, g)
	// No report is taken until there is more than the shared memory and the worker hold. In JSON, a
	// control character takes six bytes.
	const asked = 4000
	path, long := "/"+strings.Repeat("%01", 1000), strings.Repeat("\"", 1000)
	client := g.NewClient(false)
	for range asked {
		r, err := g.Try(client, headgatetest.Request{Host: "a.test", Path: path + "?" + long, Header: http.Header{"User-Agent": {long}, "Traceparent": {sampled}}})
		if err != nil || r.Status != 200 {
			t.Fatal(err, r.Status)
		}
	}
	headgatetest.Eventually(t, "all spans", func() bool {
		s.take()
		return len(s.list)+s.dropped >= 2*asked
	})
	if len(s.list)+s.dropped != 2*asked || s.dropped == 0 || len(s.list) == 0 {
		t.Errorf("%d spans and %d dropped of %d", len(s.list), s.dropped, 2*asked)
	}
	// There is room again.
	s.list, s.dropped = nil, 0
	s.of(parentOf(t, g.Get("a.test", "/").WantStatus(t, 200).Echo.Header).trace, 2)
	if s.dropped != 0 {
		t.Errorf("%d spans are dropped although there is room", s.dropped)
	}
}
