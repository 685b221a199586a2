package headgatetest

import (
	"context"
	"log/slog"
	"time"

	"github.com/headgate/headgate/internal/cluster/limitstore"
	"github.com/headgate/headgate/internal/feature"
)

// exchange has the instance count together with others, until the test ends.
func (g *Instance) exchange(o Options, log *slog.Logger) {
	g.t.Helper()
	if o.LimitStore == "" {
		return
	}
	store, err := limitstore.New(limitstore.Settings{
		Address: limitstore.Address{URL: o.LimitStore}, Registry: g.Metrics.Registry, Log: log,
		Ask: func(ctx context.Context, question, answer any) error {
			g.exchanges.Add(1)
			now := time.Now().UnixNano()
			if before := g.asked.Swap(now); before != 0 {
				g.longestExchange.Store(max(g.longestExchange.Load(), now-before))
			}
			return g.Client.Feature(ctx, feature.CountingTogether(o.Features), question, answer)
		},
	})
	must(g.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		store.Run(ctx)
	}()
	g.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// LongestExchange is the longest time so far for which the instance did not exchange counters.
func (g *Instance) LongestExchange() time.Duration { return time.Duration(g.longestExchange.Load()) }

// AwaitExchange waits until the instance has exchanged all counters that have changed until now,
// if the store is there.
func (g *Instance) AwaitExchange() {
	g.t.Helper()
	// One exchange may be under way, and each asks twice.
	const asks = 4
	after := g.exchanges.Load() + asks
	Eventually(g.t, "counters are exchanged", func() bool { return g.exchanges.Load() >= after })
}
