package dataplane_test

import (
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Each worker fetches randomness for many ids at once: neither the end of one
// fetch nor another worker may repeat an id.
func TestRequestIDsNeverRepeat(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("w", startWire(t, "").address) + headgatetest.Ingress("plain", "plain.test", "/", "w")})

	const clients, requests = 8, 200
	ids := make(chan string, clients*requests)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			client := g.NewClient(false)
			defer client.CloseIdleConnections()
			for range requests {
				r, err := g.Try(client, headgatetest.Request{Host: "plain.test", Path: "/"})
				if err != nil {
					t.Error(err)
					return
				}
				ids <- sentHeader(r.Body).Get("X-Request-Id")
			}
		})
	}
	group.Wait()
	close(ids)

	seen := map[string]bool{}
	for id := range ids {
		if seen[id] || !requestID.MatchString(id) {
			t.Fatalf("a request's id is %q, which is not an id or was another request's", id)
		}
		seen[id] = true
	}
	if len(seen) != clients*requests {
		t.Errorf("%d ids of %d requests", len(seen), clients*requests)
	}
}
