package dataplane_test

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// programStatus is the status of a request to the program, 0 for none.
func programStatus(p *program, host string) int {
	response, err := p.ask(host, "/")
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// checkLimitStore: with --limit-store, two programs count together.
func checkLimitStore(t *testing.T, binary string) {
	store := headgatetest.StartRedis(t)
	manifests := headgatetest.Service("one") + headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Ingress("web", "a.test", "/", "one", "global-rate-limit: 1000", "global-rate-limit-window: 24h") +
		headgatetest.Ingress("ready", "ready.test", "/", "one")
	var programs []*program
	for range 2 {
		p := startProgram(t, binary, manifests, "--limit-store="+store.URL())
		p.open(true)
		headgatetest.Eventually(t, "the program serves", func() bool { return programStatus(p, "ready.test") == http.StatusOK })
		programs = append(programs, p)
	}
	// Each lets fewer than the limit pass.
	passed := 0
	headgatetest.Eventually(t, "both together reach the limit", func() bool {
		statuses := map[int]int{}
		for _, p := range programs {
			statuses[programStatus(p, "a.test")]++
		}
		passed += statuses[http.StatusOK]
		if statuses[http.StatusOK]+statuses[http.StatusTooManyRequests] != len(programs) {
			t.Fatalf("statuses %v", statuses)
		}
		return statuses[http.StatusTooManyRequests] == len(programs)
	})
	// Alone they would let twice the limit pass.
	if passed >= 2000 {
		t.Errorf("%d requests passed", passed)
	}
}
