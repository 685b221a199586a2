// Package election makes one of several replicas the leader, by a Lease in the
// cluster.
//
// It knows the Lease and the clock. The caller decides what a leader does.
package election

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/headgate/headgate/internal/cluster/client"
)

// DefaultTTL is the default for how long a Lease is valid.
const DefaultTTL = 30 * time.Second

// Settings name the Lease and the candidate.
type Settings struct {
	// Leases are those of Namespace.
	Leases client.Resource[*coordinationv1.Lease, *coordinationv1.LeaseList]
	// Namespace and Name are those of the Lease. It is created if it is missing.
	Namespace, Name string
	// Identity is unique among all candidates for the Lease.
	Identity string
	// TTL is how long the Lease is valid after a renewal, and so the time until
	// another replica leads if the leader dies. It is rounded up to seconds; 0
	// and less stand for DefaultTTL.
	TTL time.Duration
	Log *slog.Logger
}

// An Elector takes part in the election. The verbs get, create and update on
// Leases suffice.
type Elector struct {
	settings Settings
	// leading is held while the caller leads.
	leading sync.Mutex
	// until is when Leads ends unless the Lease is renewed.
	until atomic.Pointer[time.Time]
}

// New makes an Elector. It takes part in the election once Run is called.
func New(s Settings) *Elector {
	if s.TTL <= 0 {
		s.TTL = DefaultTTL
	}
	// The Lease holds whole seconds.
	s.TTL = (s.TTL + time.Second - 1).Truncate(time.Second)
	return &Elector{settings: s}
}

// Leads reports whether this process may act as the leader at this moment. Call
// it right before each action: a process that was stopped for a while learns
// from it first that its term is over. It returns false a quarter of the TTL
// before another replica can lead, so that requests that were sent can arrive.
func (e *Elector) Leads() bool {
	until := e.until.Load()
	if until == nil {
		return false
	}
	// The monotonic clock stands still while a machine sleeps, and the wall clock
	// can be set: both have to agree.
	now := time.Now()
	return now.Before(*until) && now.Round(0).Before(until.Round(0))
}

// Run takes part until leave is closed or ctx ends. While this process is the
// leader, lead runs. The context of lead ends with the term: when the Lease is
// lost or can't be renewed. Another term may follow; lead is called again only
// after it has returned.
//
// When leave is closed, lead must return without its context ending. The Lease
// is kept until then and released afterwards, so that the next leader need not
// wait.
func (e *Elector) Run(ctx context.Context, leave <-chan struct{}, lead func(term context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-leave:
			e.leading.Lock()
			defer e.leading.Unlock()
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		e.compete(ctx, lead)
	}
}

// compete tries to become the leader, and returns when the term is over.
func (e *Elector) compete(ctx context.Context, lead func(term context.Context)) {
	c := &candidate{Elector: e, failing: map[string]bool{}}
	for !c.tries(ctx) {
		if !wait(ctx, e.pause()) {
			return
		}
	}
	term, end := context.WithCancel(ctx)
	go func() {
		e.leading.Lock()
		defer e.leading.Unlock()
		if term.Err() == nil {
			lead(term)
		}
	}()
	for wait(ctx, e.pause()) && c.renews(ctx) {
	}
	end()
	e.leading.Lock()
	defer e.leading.Unlock()
	if ctx.Err() != nil {
		c.release()
	}
	e.until.Store(nil)
}

// timeout bounds how long the API server may take to answer.
func (e *Elector) timeout() time.Duration { return e.settings.TTL / 2 }

// pause is the time between tries. Candidates that started together do not ask at the same time.
func (e *Elector) pause() time.Duration {
	pause := e.settings.TTL / 4
	return pause*9/10 + rand.N(pause/5)
}

// tries is try, with a bound on its time.
func (c *candidate) tries(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	return c.try(ctx)
}

// renews tries to renew the Lease until this succeeds, or until another process has it or
// the timeout ends.
func (c *candidate) renews(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	for !c.try(ctx) {
		if !c.holds() || !wait(ctx, c.pause()) {
			return false
		}
	}
	return true
}

// wait reports whether ctx did not end before d was over.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
