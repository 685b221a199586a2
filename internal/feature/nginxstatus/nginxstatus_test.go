package nginxstatus_test

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// The lists count for the client and for who connects, and a change acts at once.
func TestClients(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Config("use-proxy-protocol: true", "proxy-real-ip-cidr: 127.0.0.0/8")})
	const six = "2001:db8::7"
	ask := func(from string) int {
		family, to := "TCP4", "192.0.2.1"
		if from == six {
			family, to = "TCP6", "2001:db8::1"
		}
		return g.Do(headgatetest.Request{Host: "unknown.test", Path: "/nginx_status", Proxy: fmt.Sprintf("PROXY %s %s %s 40000 80\r\n", family, from, to)}).Status
	}
	check := func(want map[string]int, keys ...string) {
		t.Helper()
		g.Apply(headgatetest.Config(append(keys, "use-proxy-protocol: true", "proxy-real-ip-cidr: 127.0.0.0/8")...))
		for from, status := range want {
			if got := ask(from); got != status {
				t.Errorf("%v, from %s: status %d, want %d", keys, from, got, status)
			}
		}
	}
	reloads := g.Value(g.Metrics.Reloads)
	check(map[string]int{"127.0.0.1": 200, "192.0.2.7": 403, six: 403})
	check(map[string]int{"127.0.0.1": 200, "192.0.2.7": 200, "198.51.100.7": 403, six: 403}, "nginx-status-ipv4-whitelist: 127.0.0.1,192.0.2.0/24")
	// Who connects is not in the list.
	check(map[string]int{"127.0.0.1": 403, "192.0.2.7": 403}, "nginx-status-ipv4-whitelist: 192.0.2.0/24")
	check(map[string]int{"127.0.0.1": 200, six: 200}, "nginx-status-ipv6-whitelist: 2001:db8::/32")
	check(map[string]int{"127.0.0.1": 403, six: 403}, `nginx-status-ipv4-whitelist: ""`, `nginx-status-ipv6-whitelist: ""`)
	check(map[string]int{"127.0.0.1": 403}, "nginx-status-ipv4-whitelist: localhost")
	check(map[string]int{"127.0.0.1": 200, "192.0.2.7": 403, six: 403})
	if n := g.Value(g.Metrics.Reloads); n != reloads {
		t.Errorf("%d reloads", n-reloads)
	}
}
