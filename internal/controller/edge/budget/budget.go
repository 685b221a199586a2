// Package budget bounds the reloads that tenants cause.
package budget

import (
	"slices"
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

// Pace is how long it takes until there is one more reload, while so many generations of old workers are
// alive: the whole interval at their maximum, less while there are fewer.
func Pace(limits model.Process, generations int) time.Duration {
	most := max(limits.OldGenerations, 0) + 1
	return limits.ReloadInterval * time.Duration(min(generations+1, most)) / time.Duration(most)
}

// A Share lets namespaces have one reload each in an interval, though others have used up all. All of them
// together have as many of these as all have anyway.
type Share struct {
	all Budget
	// last is when each namespace had one.
	last map[string]time.Time
}

// Take takes a reload for the namespaces that wait for one, and reports whether there is one.
func (s *Share) Take(now time.Time, limits model.Process, waiting []string) bool {
	for namespace, last := range s.last {
		if now.Sub(last) >= limits.ReloadInterval {
			delete(s.last, namespace)
		}
	}
	if !slices.ContainsFunc(waiting, func(namespace string) bool { _, had := s.last[namespace]; return !had }) || s.all.Take(now, limits) > 0 {
		return false
	}
	s.Note(now, waiting)
	return true
}

// Note notes a reload that namespaces had.
func (s *Share) Note(now time.Time, namespaces []string) {
	if s.last == nil {
		s.last = map[string]time.Time{}
	}
	for _, namespace := range namespaces {
		s.last[namespace] = now
	}
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
