// Package budget bounds the reloads that tenants cause.
package budget

import (
	"time"

	"github.com/headgate/headgate/internal/model"
)

// A Budget is a token bucket of reloads.
type Budget struct {
	tokens float64
	since  time.Time
}

// Take takes a reload, or returns how long it takes until there is one.
func (b *Budget) Take(now time.Time, limits model.Process) time.Duration {
	burst := float64(limits.ReloadBurst)
	switch {
	case b.since.IsZero():
		b.tokens = burst
	case limits.ReloadInterval > 0:
		b.tokens += now.Sub(b.since).Seconds() / limits.ReloadInterval.Seconds()
	}
	b.since = now
	if b.tokens = min(b.tokens, burst); b.tokens >= 1 || limits.ReloadInterval <= 0 {
		b.tokens = max(0, b.tokens-1)
		return 0
	}
	return max(time.Millisecond, time.Duration((1-b.tokens)*float64(limits.ReloadInterval)))
}

// Refill leaves at least one reload in it.
func (b *Budget) Refill() { b.tokens = max(b.tokens, 1) }

// Limits are the limits of reloads, which the process has only with its feature.
func Limits(p model.Process) model.Process {
	if p.ReloadBurst == 0 {
		p.ReloadBurst, p.ReloadInterval, p.OldGenerations = model.ReloadBurst, model.ReloadInterval, model.OldGenerations
	}
	return p
}
