// Package retry says when a failed step is tried again.
package retry

import "time"

// A Timer is when to retry a failed step, with growing pauses.
type Timer struct {
	// Due fires when it is time to retry; nil if nothing failed.
	Due <-chan time.Time
	// Pause is the time until then.
	Pause time.Duration
}

const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// Next is the pause before the next one.
func (r *Timer) Next() time.Duration {
	r.Pause = min(max(firstPause, 2*r.Pause), maxPause)
	return r.Pause
}

// Later sets the time of the next one.
func (r *Timer) Later() { r.Due = time.After(r.Next()) }

// Done ends it: the step did not fail.
func (r *Timer) Done() { *r = Timer{} }
