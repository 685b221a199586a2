package canary_test

import (
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

func backend(t *testing.T, name string) string {
	t.Helper()
	return headgatetest.Service(name) + headgatetest.Endpoints(name, headgatetest.StartEcho(t, name))
}

// offer is an Ingress that is a canary of "/" of a host.
func offer(name, host, service string, annotations ...string) string {
	return headgatetest.Ingress(name, host, "/", service, append([]string{"canary: true"}, annotations...)...)
}

func TestWhichBackendIsAsked(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "main") + backend(t, "one") + backend(t, "two") +
		headgatetest.Service("down") + headgatetest.Endpoints("down") +
		headgatetest.Ingress("header", "header.test", "/", "main") + offer("header-1", "header.test", "one", "canary-by-header: X-New") +
		headgatetest.Ingress("value", "value.test", "/", "main") +
		offer("value-1", "value.test", "one", "canary-by-header: X-New", "canary-by-header-value: beta", "canary-by-header-pattern: gamma") +
		headgatetest.Ingress("pattern", "pattern.test", "/", "main") +
		offer("pattern-1", "pattern.test", "one", "canary-by-header: X-New", "canary-by-header-pattern: ^b(e|f)ta$") +
		headgatetest.Ingress("broken", "broken.test", "/", "main") +
		offer("broken-1", "broken.test", "one", "canary-by-header: X-New", "canary-by-header-pattern: be(ta", "canary-weight: 100") +
		headgatetest.Ingress("cookie", "cookie.test", "/", "main") +
		offer("cookie-1", "cookie.test", "one", "canary-by-header: X-New", "canary-by-cookie: try.me", "canary-weight: 100") +
		headgatetest.Ingress("both", "both.test", "/", "main") + offer("both-1", "both.test", "one", "canary-weight: 100") +
		offer("both-2", "both.test", "two", "canary-by-header: X-New") +
		headgatetest.Ingress("down", "down.test", "/", "main") + offer("down-1", "down.test", "down", "canary-weight: 100") +
		headgatetest.Ingress("hole", "hole.test", "/", "main") +
		strings.Replace(offer("hole-1", "hole.test", "one", "canary-weight: 100"), "      - {path", "      - {path: /not, pathType: Prefix, "+
			"backend: {service: {name: one, port: {number: 80}}}}\n      - {path", 1) +
		headgatetest.Ingress("shared", "shared.test", "/", "main"),
	})
	for path, want := range map[string]string{"/": "one", "/not": "main", "/not/x": "main", "/nothing": "one"} {
		if got := g.Get("hole.test", path).WantStatus(t, 200).Echo.Backend; got != want {
			t.Errorf("hole.test%s: %s answered, want %s", path, got, want)
		}
	}
	for _, c := range []struct{ host, header, value, want string }{
		{"header.test", "", "", "main"},
		{"header.test", "X-New", "always", "one"},
		{"header.test", "X-New", "never", "main"},
		{"header.test", "X-New", "Always", "main"},
		{"header.test", "X-Old", "always", "main"},
		{"value.test", "X-New", "beta", "one"},
		{"value.test", "X-New", "always", "main"},
		{"value.test", "X-New", "gamma", "main"},
		{"pattern.test", "X-New", "bfta", "one"},
		{"pattern.test", "X-New", "xbfta", "main"},
		{"pattern.test", "X-New", "always", "main"},
		{"broken.test", "", "", "one"},
		{"broken.test", "X-New", "beta", "main"},
		{"cookie.test", "", "", "one"},
		{"cookie.test", "Cookie", "try.me=never", "main"},
		{"cookie.test", "Cookie", "try.me=always", "one"},
		{"cookie.test", "X-New", "never", "main"},
		{"both.test", "", "", "one"},
		{"both.test", "X-New", "always", "two"},
		{"both.test", "X-New", "never", "one"},
		{"down.test", "", "", "main"},
		{"shared.test", "X-New", "always", "main"},
	} {
		for _, http2 := range []bool{false, true} {
			r := headgatetest.Request{Host: c.host, HTTP2: http2}
			if http2 {
				r.Scheme = "https"
			}
			if c.header != "" {
				r.Header = http.Header{c.header: {c.value}}
			}
			response := g.Do(r).WantStatus(t, 200)
			if got := response.Echo.Backend; got != c.want {
				t.Errorf("%s with %s: %s (HTTP/2 %v): %s answered, want %s", c.host, c.header, c.value, http2, got, c.want)
			}
		}
	}

	g.Apply(offer("shared-1", "shared.test", "one", "canary-weight: 100"))
	wantBackend(t, g, "shared.test", "one")
	wantBackend(t, g, "header.test", "main")
	g.Delete(offer("shared-1", "shared.test", "one"))
	wantBackend(t, g, "shared.test", "main")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

// A pattern that takes forever keeps the request away from its canary, with any
// weight, and any cookie: as with a pattern that is broken. It does not
// hold up the worker, and other canaries are asked as they would be.
func TestExplodingPattern(t *testing.T) {
	t.Parallel()
	const bomb = "canary-by-header-pattern: ^(a+)+$"
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: backend(t, "main") + backend(t, "one") + backend(t, "two") +
		headgatetest.Ingress("bomb", "bomb.test", "/", "main") +
		offer("bomb-1", "bomb.test", "one", "canary-by-header: X-New", bomb, "canary-by-cookie: next", "canary-weight: 100") +
		headgatetest.Ingress("two", "two.test", "/", "main") +
		offer("two-1", "two.test", "one", "canary-by-header: X-New", bomb, "canary-weight: 100") +
		offer("two-2", "two.test", "two", "canary-weight: 100"),
	})
	exploding := strings.Repeat("a", 60) + "!"
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, c := range []struct{ host, value, want string }{
			{"bomb.test", "aaaa", "one"},
			{"bomb.test", "b", "one"}, // by the cookie
			{"bomb.test", exploding, "main"},
			{"two.test", exploding, "two"},
		} {
			r := g.Do(headgatetest.Request{Host: c.host, Scheme: scheme, HTTP2: http2, Header: http.Header{
				"X-New": {c.value}, "Cookie": {"next=always"},
			}}).WantStatus(t, 200)
			if r.Echo == nil || r.Echo.Backend != c.want {
				t.Errorf("%s with %.10s by %s: %+v answered, want %s", c.host, c.value, r.Proto, r.Echo, c.want)
			}
		}
	})
	if !strings.Contains(g.Log.String(), "match the canary pattern ^(a+)+$: ") {
		t.Errorf("the log does not say which pattern gave up:\n%s", g.Log)
	}
}

// Without an access log NGINX has no variable for the name of the backend.
func TestWithoutAccessLog(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t, "main") + backend(t, "one") + headgatetest.Config("disable-access-log: true") +
		headgatetest.Service("down") + headgatetest.Endpoints("down") +
		headgatetest.Ingress("web", "web.test", "/", "main") + offer("offer", "web.test", "one", "canary-weight: 100") +
		headgatetest.Ingress("spare", "spare.test", "/", "down", "default-backend: one"),
	})
	wantBackend(t, g, "web.test", "one")
	wantBackend(t, g, "spare.test", "one")
}

func wantBackend(t *testing.T, g *headgatetest.Instance, host, want string) {
	t.Helper()
	if got := g.Get(host, "/").WantStatus(t, 200).Echo.Backend; got != want {
		t.Errorf("%s: %s answered, want %s", host, got, want)
	}
}

// Canaries get their shares, by all workers together, within six standard deviations: one run
// in a hundred million exceeds them. With three, one in 100 would fail for nothing.
func TestShares(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const workers, requests = 4, 20_000
	var services strings.Builder
	for _, name := range []string{"main", "one", "two"} {
		services.WriteString(headgatetest.Service(name) + headgatetest.Endpoints(name, headgatetest.StartPlain(t, func(*http.Request) (int, string) {
			return 0, "X-Backend: " + name + "\r\n"
		})))
	}
	shows, ingress := headgatetest.ShowsWorker()
	g := headgatetest.Start(t, headgatetest.Options{Workers: workers, Features: append(all.Features(), shows),
		Manifests: services.String() + ingress + headgatetest.Config("keep-alive-requests: 1000000") + headgatetest.Ingress("web", "web.test", "/", "main") +
			offer("a", "web.test", "one", "canary-weight: 20") + offer("b", "web.test", "two", "canary-weight: 50", "canary-weight-total: 1000"),
	})
	var mu sync.Mutex
	counts := map[string]int{}
	err := g.Connections(workers, 2).Each(requests, func(c *headgatetest.Connection, _ int) error {
		response, err := c.Ask("web.test", "/")
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		counts[response.Header.Get("X-Backend")]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, share := range map[string]float64{"main": 0.75, "one": 0.2, "two": 0.05} {
		mean, most := requests*share, 6*math.Sqrt(requests*share*(1-share))
		if math.Abs(float64(counts[name])-mean) > most {
			t.Errorf("%s: %d of %d requests, want %.0f ± %.0f", name, counts[name], requests, mean, most)
		}
	}
}
