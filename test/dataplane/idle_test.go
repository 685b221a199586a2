package dataplane_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestIdleConnectionsAreShared: one namespace's 500 endpoints, asked in turn, don't push
// out the idle connection to another namespace's one.
func TestIdleConnectionsAreShared(t *testing.T) {
	t.Parallel()
	const many, rounds = 500, 4
	var mu sync.Mutex
	clients := map[string]map[string]bool{"many": {}, "one": {}}
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clients[r.Host[:len(r.Host)-len(".test")]][r.RemoteAddr] = true
	})}}
	server.Start()
	t.Cleanup(server.Close)
	at := func(n int) string {
		return fmt.Sprintf("127.1.%d.%d:%d", n/200, 1+n%200, listener.Addr().(*net.TCPAddr).Port)
	}
	var addresses []string
	for n := range many {
		addresses = append(addresses, at(n))
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Service("many") + headgatetest.Endpoints("many", addresses...) +
		headgatetest.Ingress("many", "many.test", "/", "many") +
		inNamespace("other", headgatetest.Service("one")+headgatetest.Endpoints("one", at(many))+headgatetest.Ingress("one", "one.test", "/", "one"))})
	for range rounds {
		g.Get("one.test", "/").WantStatus(t, 200)
		for range many {
			g.Get("many.test", "/").WantStatus(t, 200)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d connections for %d requests, and %d for %d of the other namespace", len(clients["many"]), many*rounds, len(clients["one"]), rounds)
	if len(clients["many"]) > many || len(clients["one"]) > 1 {
		t.Error("idle connections were pushed out")
	}
}
