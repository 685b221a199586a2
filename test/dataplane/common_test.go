package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// usualIngresses are annotations as Ingresses of widely used programs have them, with their shares of a thousand.
// Most have none that NGINX takes only statically.
var usualIngresses = []struct {
	share       int
	annotations []string
}{
	{560, nil}, {60, []string{"proxy-read-timeout: 3600", "proxy-send-timeout: 3600"}},
	{70, []string{"proxy-body-size: 0"}}, {50, []string{"proxy-body-size: 50m"}}, {40, []string{"proxy-body-size: 100m"}}, {25, []string{"proxy-body-size: 10m"}},
	{20, []string{"proxy-body-size: 8m"}}, {15, []string{"proxy-body-size: 500m"}}, {15, []string{"proxy-body-size: 1g"}}, {10, []string{"proxy-body-size: 2g"}}, {8, []string{"proxy-body-size: 20m"}},
	{6, []string{"proxy-body-size: 64m"}}, {5, []string{"proxy-body-size: 512m"}}, {5, []string{"proxy-body-size: 200m"}}, {4, []string{"proxy-body-size: 5m"}}, {4, []string{"proxy-body-size: 32m"}},
	{3, []string{"proxy-body-size: 250m"}},
	{15, []string{"proxy-body-size: 0", "proxy-request-buffering: off"}}, {5, []string{"proxy-body-size: 10g", "proxy-request-buffering: off"}},
	{10, []string{"proxy-buffering: off"}}, {6, []string{"proxy-body-size: 0", "proxy-buffering: off", "proxy-request-buffering: off"}},
	{12, []string{"proxy-buffer-size: 128k"}}, {8, []string{"proxy-buffer-size: 16k"}}, {5, []string{"proxy-buffer-size: 64k"}}, {4, []string{"proxy-buffer-size: 8k"}}, {3, []string{"proxy-buffer-size: 256k"}},
	{20, []string{"backend-protocol: HTTPS"}}, {6, []string{"backend-protocol: GRPC"}}, {3, []string{"backend-protocol: GRPCS"}}, {3, []string{"backend-protocol: HTTPS", "proxy-body-size: 0"}},
}

// TestUsualIngressesCauseNoReload: of 1,000 Ingresses as they are, one after the other, none waits for a reload.
func TestUsualIngressesCauseNoReload(t *testing.T) {
	t.Parallel()
	const count = 1000
	timing := edge.DefaultTiming()
	timing.CommonProfiles = true
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: &timing, Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a"))})
	random := rand.New(rand.NewPCG(15, 5))
	before := g.Value(g.Metrics.Reloads)
	var longest time.Duration
	waited := 0
	for i := range count {
		at, n := 0, random.IntN(count)
		for n >= usualIngresses[at].share {
			n -= usualIngresses[at].share
			at++
		}
		begun := time.Now()
		name := fmt.Sprintf("i%d", i)
		g.Apply(headgatetest.Ingress(name, name+".test", "/", "a", usualIngresses[at].annotations...))
		if g.Value(g.Metrics.WaitingHosts) > 0 {
			waited++
			headgatetest.Eventually(t, "the host is served as it is written", func() bool { return g.Value(g.Metrics.WaitingHosts) == 0 })
		}
		longest = max(longest, time.Since(begun))
	}
	if n := g.Value(g.Metrics.Reloads) - before; n > 0 || waited > 0 {
		t.Errorf("%v reloads, and %d Ingresses waited: want none", n, waited)
	}
	t.Logf("the longest took %v", longest)
}
