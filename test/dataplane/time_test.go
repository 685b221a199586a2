package dataplane_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// costly is a pattern that looks at a long text for long, within the match limit.
func costly(number int) string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "(?!.*.*X%d)", i)
	}
	return fmt.Sprintf("%sQ%d", &b, number)
}

// An attack is what one tenant's clients send.
type attack struct {
	host   string
	path   string
	header http.Header
	// vary is put behind the names of hosts, so that each is another one.
	vary bool
	// among is for how many hosts, in turn, whose number is in the name.
	among int64
}

// run sends requests from four clients until the test's part is over, and returns how
// many were answered with each status.
func (a attack) run(t *testing.T, g *headgatetest.Instance) (stop func() map[int]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	var all sync.WaitGroup
	var mutex sync.Mutex
	var number atomic.Int64
	statuses := map[int]int{}
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", g.HTTP, a.path), nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Host, r.Header = a.host, a.header.Clone()
				if a.vary {
					r.Host = fmt.Sprintf("%s%d.test", a.host, number.Add(1))
				}
				if a.among > 0 {
					r.Host = fmt.Sprintf(a.host, number.Add(1)%a.among)
				}
				answer, err := client.Do(r)
				if err != nil {
					continue
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				mutex.Lock()
				statuses[answer.StatusCode]++
				mutex.Unlock()
			}
		})
	}
	return func() map[int]int {
		cancel()
		all.Wait()
		client.CloseIdleConnections()
		return statuses
	}
}

// median is that of 40 requests to a host.
func median(t *testing.T, g *headgatetest.Instance, host string) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 40 {
		begun := time.Now()
		g.Get(host, "/").WantStatus(t, 200)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// What one namespace's expressions take is not taken from the others: their requests
// are as fast as before, and answered.
func TestExpressionsAreTheirOwners(t *testing.T) {
	backend := startWire(t, "X-Wire: a\r\n").address
	long, longer := "/"+strings.Repeat("a", 600)+"Q0123456789", "/"+strings.Repeat("a", 7900)+"Q0123456789"
	var paths, aliases []string
	for i := range 190 {
		paths = append(paths, "evil.test ImplementationSpecific /"+costly(i)+" a")
	}
	for i := range 16 {
		aliases = append(aliases, fmt.Sprintf(`~^(?!.*.*.*X%d)(?=.{252}.{252})`, i))
	}
	var names strings.Builder
	for i := range 10 {
		names.WriteString(ruled(fmt.Sprint("names", i), fmt.Sprintf("names%d.test Prefix / a", i), "", "server-alias: "+strings.Join(aliases, ", ")))
	}
	for name, c := range map[string]struct {
		evil   string
		attack attack
	}{
		"paths":      {ruled("evil", append(paths, "", useRegex)...), attack{host: "evil.test", path: long}},
		"long paths": {ruled("evil", append(paths[:4:4], "", useRegex)...), attack{host: "evil.test", path: longer}},
		"names":      {names.String(), attack{host: strings.Repeat("a", 220), path: "/", vary: true}},
		"canary": {
			ruled("evil", "evil.test Prefix / a") + served("b", backend) +
				ruled("canary", "evil.test Prefix / b", "", "canary: true", "canary-by-header: x-a", "canary-by-header-pattern: ^"+costly(0)),
			attack{host: "evil.test", path: "/", header: http.Header{"X-A": {strings.Repeat("a", 7900) + "Q0123456789"}}},
		},
		"rewrite": {
			ruled("evil", "evil.test ImplementationSpecific /"+strings.TrimSuffix(costly(0), "Q0")+"(a*)Q0 a", "", "rewrite-target: /$1"),
			attack{host: "evil.test", path: "/" + strings.Repeat("a", 4000) + "Q0123456789"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", backend) +
				ruled("good", "good.test Prefix / a") + ruled("regex", "regex.test ImplementationSpecific /[a-z]* a", "", useRegex) +
				inNamespace("evil", served("a", backend)+c.evil)})
			idle := max(median(t, g, "good.test"), median(t, g, "regex.test"))
			stop := c.attack.run(t, g)
			best := time.Hour
			for range 3 {
				best = min(best, max(median(t, g, "good.test"), median(t, g, "regex.test")))
				if best < 2*idle {
					break
				}
			}
			statuses := stop()
			t.Logf("%s: idle %v, under attack %v; the attacker's answers: %v", name, idle, best, statuses)
			if best > 2*idle+20*time.Millisecond {
				t.Errorf("a request of another namespace takes %v, at rest %v", best, idle)
			}
			if statuses[http.StatusServiceUnavailable] == 0 && !c.attack.vary {
				return // The match limit or the limit of paths was enough.
			}
			const line = "namespace evil: its regular expressions take more than 20 ms a second"
			if n := strings.Count(g.Log.String(), line); n < 1 || n > 2 {
				t.Errorf("the log has %d lines that say whose expressions take long", n)
			}
			if times := g.State().Times["regex"]; times["evil"] < 0.02 {
				t.Errorf("the workers took %v", times)
			}
			if refusals := g.State().Refusals; refusals["regex"]["evil"] == 0 || len(refusals) != 1 || len(refusals["regex"]) != 1 {
				t.Errorf("refusals: %v", refusals)
			}
			if n, err := testutil.GatherAndCount(g.Metrics.Registry, "headgate_refusals_total"); n != 1 || err != nil {
				t.Errorf("the metric has %d namespaces: %v", n, err)
			}
		})
	}
}

// The time of quick expressions is measured in some requests only: none is refused, and slow ones are
// noticed nevertheless.
func TestExpressionsBecomeSlow(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 2 {
		paths = append(paths, "web.test ImplementationSpecific /"+costly(i)+" a")
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", startWire(t, "X-Wire: a\r\n").address) +
		ruled("web", append(paths, "web.test Prefix / a", "", useRegex)...)})
	for range 200 {
		g.Get("web.test", "/b").WantStatus(t, 200)
	}
	slow := "/" + strings.Repeat("a", 3900) + "Q0123456789"
	for n := range 3000 {
		if g.Get("web.test", slow).Status == http.StatusServiceUnavailable {
			t.Logf("refused after %d requests", n)
			return
		}
	}
	t.Errorf("no request was refused; the workers took %v", g.State().Times["regex"])
}

// An expression that fails ends only requests that would go to a route of the same
// namespace without it.
func TestExpressionsFailForTheirOwners(t *testing.T) {
	t.Parallel()
	exploding, backend := "/"+strings.Repeat("a", 60)+"!", startWire(t, "X-Wire: a\r\n").address
	const bomb = "/(?=(([a-z/]+)+)+$X)aaaaaaaaaa"
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", backend) +
		ruled("good", "shared.test Prefix / a", "shared.test Prefix /aaaa a") +
		ruled("own", "own.test ImplementationSpecific "+bomb+" a", "own.test Prefix / a", "", useRegex) +
		inNamespace("evil", served("a", backend)+ruled("evil", "shared.test ImplementationSpecific "+bomb+" a", "", useRegex))})
	// More often than it is tried for other namespaces.
	for range 30 {
		g.Get("shared.test", exploding).WantStatus(t, 200)
	}
	for range 5 {
		g.Get("own.test", exploding).WantStatus(t, 500)
	}
	headgatetest.Eventually(t, "there is a finding", func() bool { return g.Value(g.Metrics.Findings.WithLabelValues("GivenUp")) == 1 })
	if want := fmt.Sprintf(`host shared.test: the regular expression \"^%s\" took`, bomb); !strings.Contains(g.Log.String(), want) || !strings.Contains(g.Log.String(), "object=ingress/evil/evil") {
		t.Errorf("the log has no %s of ingress/evil/evil:\n%s", want, g.Log)
	}
	g.Get("own.test", "/b").WantStatus(t, 200)
	// There is one for the first failure and one for the last, and one a second at most.
	if n := strings.Count(g.Log.String(), "host shared.test: match ^"+bomb); n != 1 && n != 2 {
		t.Errorf("the log has %d lines about the pattern, want 1 or 2:\n%s", n, g.Log)
	}
	g.Apply(inNamespace("evil", ruled("evil", "shared.test ImplementationSpecific /(b[a-z]) a", "", useRegex)))
	headgatetest.Eventually(t, "the finding is resolved", func() bool { return g.Value(g.Metrics.Findings.WithLabelValues("GivenUp")) == 0 })
}

// Long paths are not compared with expressions. That ends only requests that might go to
// the namespace of one.
func TestLongPathsAndExpressions(t *testing.T) {
	t.Parallel()
	backend := startWire(t, "X-Wire: a\r\n").address
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", backend) +
		ruled("own", "own.test ImplementationSpecific /[a-z]+/[0-9]+ a", "own.test Prefix / a", "", useRegex) +
		ruled("text", "text.test Prefix /x a", "text.test Prefix / a", "", useRegex) +
		ruled("good", "shared.test Prefix / a") +
		inNamespace("other", served("a", backend)+ruled("other", "shared.test ImplementationSpecific /[a-z]+/[0-9]+ a", "", useRegex))})
	longest := "/" + strings.Repeat("a", 4094)
	for host, want := range map[string]int{"own.test": 414, "text.test": 200, "shared.test": 200} {
		g.Get(host, longest).WantStatus(t, 200)
		g.Get(host, longest+"a").WantStatus(t, want)
	}
}
