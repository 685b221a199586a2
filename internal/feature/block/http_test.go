package block_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A blocked client gets 403 for everything, also where Ingresses allow it.
func TestNetworks(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.Ingress("own", "a.test", "/own", "a", "denylist-source-range: 198.51.100.1") +
		headgatetest.Ingress("redirect", "a.test", "/redirect", "a", "permanent-redirect: https://new.test/") +
		headgatetest.Ingress("any", "a.test", "/any", "a", "allowlist-source-range: 0.0.0.0/0,::/0", "satisfy: any") +
		headgatetest.Ingress("app", "a.test", "/", "a", "from-to-www-redirect: true") +
		headgatetest.Config("use-proxy-protocol: true", "block-cidrs: 192.0.2.0/24,2001:db8::/32")})
	ask := func(address, host, path string) int {
		family := "TCP4 " + address + " 192.0.2.1"
		if strings.Contains(address, ":") {
			family = "TCP6 " + address + " 2001:db8::1"
		}
		var status int
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			got := g.Do(headgatetest.Request{Host: host, Path: path, Scheme: scheme, HTTP2: http2, Proxy: fmt.Sprintf("PROXY %s 40000 80\r\n", family)}).Status
			if status != 0 && got != status {
				t.Errorf("%s%s from %s over %s, HTTP/2 %v: status %d, otherwise %d", host, path, address, scheme, http2, got, status)
			}
			status = got
		})
		return status
	}
	for way, want := range map[string]int{
		"a.test /own": 200, "a.test /redirect": 301, "a.test /any": 200, "a.test /": 200, "www.a.test /": 308, "unknown.test /": 404, "unknown.test /healthz": 200,
	} {
		host, path, _ := strings.Cut(way, " ")
		for address, blocked := range map[string]bool{"192.0.2.7": true, "2001:db8::7": true, "::ffff:192.0.2.7": true, "198.51.100.7": false, "2001:db9::7": false} {
			expect := want
			if blocked {
				expect = 403
			}
			// A shortcut answers the second one.
			for range 2 {
				if got := ask(address, host, path); got != expect {
					t.Errorf("%s from %s: status %d, want %d", way, address, got, expect)
				}
			}
		}
	}
	// A change takes no reload, and counts at once.
	before := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Config("use-proxy-protocol: true", "block-cidrs: 198.51.100.7"))
	if got := ask("192.0.2.7", "a.test", "/"); got != 200 {
		t.Errorf("from who is no longer blocked: status %d", got)
	}
	if got := ask("198.51.100.7", "a.test", "/"); got != 403 {
		t.Errorf("from who is blocked now: status %d", got)
	}
	if got := g.Value(g.Metrics.Reloads); got != before {
		t.Errorf("%v reloads, before %v", got, before)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.Ingress("app", "a.test", "/", "a") +
		headgatetest.Config("block-user-agents: BadBot,BÖT,,~*evil,~^Exact$,~(a+)+$,", "block-referers: http://spam.example/,~*junk")})
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{"User-Agent", "BadBot", 403}, {"User-Agent", "badbot", 403}, {"User-Agent", "BadBot/1.0", 200},
		{"User-Agent", "BÖT", 403}, {"User-Agent", "bÖt", 403}, {"User-Agent", "böt", 200},
		{"User-Agent", "curl-EVIL/1.2", 403}, {"User-Agent", "Exact", 403}, {"User-Agent", "exact", 200}, {"User-Agent", "Mozilla/5.0", 200},
		// The match limit ends it.
		{"User-Agent", strings.Repeat("a", 4000) + "!", 403},
		{"Referer", "http://spam.example/", 403}, {"Referer", "http://spam.example/x", 200}, {"Referer", "http://a.JUNK.example/y", 403},
		{"Referer", "http://good.example/", 200},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			if got := g.Do(headgatetest.Request{Host: "a.test", Scheme: scheme, HTTP2: http2, Header: http.Header{c.name: {c.value}}}).Status; got != c.want {
				t.Errorf("%s: %.40s over %s, HTTP/2 %v: status %d, want %d", c.name, c.value, scheme, http2, got, c.want)
			}
		})
	}
	g.Apply(headgatetest.Config("block-user-agents: ~^$"))
	g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"User-Agent": {""}}}).WantStatus(t, 403)
	g.Do(headgatetest.Request{Host: "a.test"}).WantStatus(t, 200)
}
