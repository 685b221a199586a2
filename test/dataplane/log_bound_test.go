package dataplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/headgatetest"
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
