package dataplane_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Finding C1: what clients can make Lua log is a line a second for each place and host, in
// each worker. The next line says how many were left out.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Service("none") +
		headgatetest.Ingress("a", "a.test", "/", "one", "auth-url: http://none.default.svc/") +
		headgatetest.Ingress("b", "*.b.test", "/", "one", "auth-url: http://none.default.svc/")})
	const requests = 300
	begun := time.Now()
	for range requests {
		g.Get("a.test", "/").WantStatus(t, 500)
		g.Get("x"+time.Now().Format("150405000000")+".b.test", "/").WantStatus(t, 500)
	}
	// A second may begin at both ends.
	most := int(time.Since(begun)/time.Second) + 2
	for _, host := range []string{"host a.test", "host *.b.test"} {
		line := host + ": the auth service has no endpoint"
		headgatetest.Eventually(t, "a line of "+host+" says how many were left out", func() bool {
			g.Get("a.test", "/")
			g.Get("x.b.test", "/")
			return strings.Contains(g.Log.String(), line+" (and ")
		})
		most := most + int(time.Since(begun)/time.Second)
		if n := strings.Count(g.Log.String(), line); n > most || n < 1 {
			t.Errorf("%d lines of %s, want at most %d", n, host, most)
		}
	}
}

// What limits and lists refuse has lines with the host, the reason and the client, as many in a
// second as other lines of a place. A client can't forge one, and requests that pass have none.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	of := headgatetest.Ingress
	echo := headgatetest.StartEcho(t, "one")
	var busy atomic.Bool
	held := make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { busy.Store(true); <-held }))
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("one", echo) + served("slow", slow) +
		of("denied", "denied.test", "/", "one", "denylist-source-range: 127.0.0.0/8") + of("others", "others.test", "/", "one", "allowlist-source-range: 192.0.2.0/24") +
		of("any", "any.test", "/", "one", "allowlist-source-range: 192.0.2.0/24", "satisfy: any", "auth-type: basic", "auth-secret: users") + usersSecret +
		of("rate", "rate.test", "/", "one", "limit-rpm: 1", "limit-burst-multiplier: 1") + of("busy", "busy.test", "/", "slow", "limit-connections: 1") +
		of("open", "open.test", "/", "one", "denylist-source-range: 192.0.2.0/24", "limit-rps: 1000", "limit-connections: 1000")})
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		g.Get("busy.test", "/")
	}()
	defer func() { close(held); <-waiting }()
	headgatetest.Eventually(t, "busy.test has a connection", busy.Load)
	begun := time.Now()
	for host, reason := range map[string]string{
		"denied.test": "denylist-source-range refuses the client's address", "others.test": "allowlist-source-range does not have the client's address",
		"rate.test": "limit-rps or limit-rpm refuses the request", "busy.test": "limit-connections refuses the request",
	} {
		ask := func() {
			// The line end is what a client would forge a line with.
			g.Do(headgatetest.Request{Host: host, Path: "/%0a2026/01/01%2000:00:00%20[error]%20forged", Header: http.Header{"User-Agent": {"[error] forged"}}})
		}
		line := "host " + host + ": " + reason
		headgatetest.Eventually(t, "a line of "+host, func() bool {
			ask()
			return strings.Contains(g.Log.String(), line)
		})
		for range 50 {
			ask()
		}
		if n, most := strings.Count(g.Log.String(), line), int(time.Since(begun)/time.Second)+2; n > most {
			t.Errorf("%d lines of %s, want at most %d", n, host, most)
		}
	}
	for range 5 {
		g.Get("open.test", "/").WantStatus(t, 200)
		g.Get("any.test", "/").WantStatus(t, 401)
		g.Do(headgatetest.Request{Host: "any.test", Header: password}).WantStatus(t, 200)
	}
	for line := range strings.Lines(g.Log.String()) {
		if strings.HasPrefix(line, "2026/01/01") || strings.Contains(line, "host open.test:") || strings.Contains(line, "host any.test:") {
			t.Errorf("the log has %q", line)
		}
		if strings.Contains(line, " refuses the ") && !strings.Contains(line, "client: 127.0.0.1") {
			t.Errorf("the client is not in %q", line)
		}
	}
}
