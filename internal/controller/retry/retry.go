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

// Later sets the time of the next one.
func (r *Timer) Later() {
	r.Pause = min(max(firstPause, 2*r.Pause), maxPause)
	r.Due = time.After(r.Pause)
}

// Done ends it: the step did not fail.
func (r *Timer) Done() { *r = Timer{} }
