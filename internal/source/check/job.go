package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/internal/source/follow"
)

// checks are those of one target.
type checks struct {
	source *Source
	target target
	// begun is set once the first check is due.
	begun bool
	// why the endpoint is unhealthy, empty while it is healthy.
	why string
	// row is how many results in a row say the opposite.
	row int
}

// Owner is the namespace of the backends.
func (c *checks) Owner() string { return c.target.namespace }

// errNew is the result of no check. So the first one gets a slot of those that may fail.
var errNew = errors.New("not checked yet")

// Known delays the first check by a random part of the interval: endpoints that came at the same
// time are not checked at the same time.
func (c *checks) Known() (answer follow.Answer, known bool) {
	if c.begun {
		return follow.Answer{}, false
	}
	c.begun = true
	return follow.Answer{Pause: 1 + rand.N(max(c.target.check.Interval, 1)), Err: errNew}, true
}

// Fetch makes a check, and takes its slot for a while. It does so in a goroutine of its own,
// whose stack does not stay for the time until the next check.
func (c *checks) Fetch(ctx context.Context) follow.Answer {
	slot := time.After(c.source.settings.SlotTime)
	probed := make(chan error, 1)
	go func() { probed <- c.source.prober.probe(ctx, &c.target) }()
	err := <-probed
	select {
	case <-slot:
	case <-ctx.Done():
		return follow.Answer{}
	}
	answer := follow.Answer{Pause: c.pause(), Err: err}
	if c.count(err) {
		answer.Object = &result{target: c.target, why: c.why}
	}
	return answer
}

// pause is the interval, and up to a tenth more or less.
func (c *checks) pause() time.Duration {
	interval := c.target.check.Interval
	return max(interval-interval/10+rand.N(max(interval/5, 1)), 1)
}

// count counts the result of a check. It reports whether the endpoint becomes healthy or
// unhealthy by it.
func (c *checks) count(err error) bool {
	threshold := c.target.check.Unhealthy
	if c.why != "" {
		threshold = c.target.check.Healthy
	}
	if err == nil {
		c.source.succeeded.Add(1)
	} else {
		c.source.failed.Add(1)
	}
	if (err == nil) == (c.why == "") {
		c.row = 0
		return false
	}
	if c.row++; c.row < threshold {
		return false
	}
	c.row, c.why = 0, ""
	if err != nil {
		c.why = err.Error()
		if threshold > 1 {
			c.why += fmt.Sprintf(", %d times in a row", threshold)
		}
	}
	return true
}
