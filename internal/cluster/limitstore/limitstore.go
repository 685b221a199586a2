// Package limitstore has replicas count requests together, in a store that speaks the protocol of
// Redis.
//
// NGINX counts, and decides alone. A few times a second, this package asks it which counters have
// changed, writes them to the store, reads what other replicas have written, and reports it to NGINX. So no
// request waits for the store. Without it, each replica counts alone.
package limitstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// Interval is the time between two exchanges with the store. What comes to other replicas
	// meanwhile, a replica does not know.
	Interval = 200 * time.Millisecond
	// RetryInterval is the same while the store is away.
	RetryInterval = time.Second
	// idleInterval is the time after which a store is asked for which there is nothing.
	idleInterval = 10 * time.Second
	// Timeout is how long the store may take for one batch.
	Timeout = time.Second
	// batch is the number of counters in an exchange, as in exchange.lua.
	batch = 200
	// MaxPending is how many counters wait for the store. A further one is left out until the
	// next request that it counts.
	MaxPending = 200_000
)

// Settings say what to exchange with which store.
type Settings struct {
	Address Address
	// Ask sends NGINX a question, and decodes the answer.
	Ask func(ctx context.Context, question, answer any) error
	// Registry gets the metrics.
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// A question has for NGINX what other replicas have counted, by counter.
type question struct {
	Others map[string]int64 `json:"others,omitempty"`
}

// An answer has counters that have changed.
type answer struct {
	// Replica names the memory that they are in.
	Replica string    `json:"replica"`
	Changed []counter `json:"changed"`
}

// A counter is of one client in one window.
type counter struct {
	Key string `json:"key"`
	// Before is the counter of the window before.
	Before  string `json:"before"`
	Seconds int    `json:"seconds"`
	Own     int64  `json:"own"`

	noted time.Time
}

// isOver reports whether no replica needs the counter any more.
func (c counter) isOver(now time.Time) bool {
	return now.Sub(c.noted) > lifetime(c)
}

// lifetime is for how long the store keeps a counter: its window and the next one.
func lifetime(c counter) time.Duration { return 2 * time.Duration(c.Seconds) * time.Second }

// A Store exchanges counters with one.
type Store struct {
	settings Settings
	remote   remote
	replica  string
	// pending are counters that the store does not have yet, by key.
	pending map[string]counter
	// away is set while the store does not answer, and answered is when it did last.
	away     bool
	answered time.Time

	up       prometheus.Gauge
	failures prometheus.Counter
}

// New makes a Store. It connects when it runs.
func New(s Settings) (*Store, error) {
	r, err := connect(s.Address)
	if err != nil {
		return nil, err
	}
	return newStore(s, r), nil
}

func newStore(s Settings, r remote) *Store {
	add := promauto.With(s.Registry)
	return &Store{
		settings: s, remote: r, pending: map[string]counter{},
		up: add.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_limit_store_up",
			Help: "1 if the store of limits over all replicas (--limit-store) answered last, 0 if it did not: each replica counts alone then.",
		}),
		failures: add.NewCounter(prometheus.CounterOpts{
			Name: "headgate_limit_store_failures_total",
			Help: "Number of exchanges with the store of limits over all replicas that failed and were retried.",
		}),
	}
}

// Run exchanges counters until ctx ends.
func (s *Store) Run(ctx context.Context) {
	defer s.remote.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause := Interval
		if err := s.exchange(ctx); ctx.Err() == nil {
			s.report(err)
			if err != nil {
				pause = RetryInterval
			}
		}
		timer.Reset(pause)
	}
}

// report logs when the store goes away and when it is back.
func (s *Store) report(err error) {
	switch {
	case err != nil:
		s.up.Set(0)
		s.failures.Inc()
		if !s.away {
			s.settings.Log.Warn("the store of limits over all replicas is away; this replica counts alone until it is back", "store", s.settings.Address.String(), "error", err)
		}
	case s.answered.IsZero():
	default:
		s.up.Set(1)
		if s.away {
			s.settings.Log.Info("the store of limits over all replicas is back", "store", s.settings.Address.String())
		}
	}
	s.away = err != nil
}

// exchange brings the store and NGINX up to date. The error is the store's.
func (s *Store) exchange(ctx context.Context) error {
	if !s.collect(ctx) {
		return nil
	}
	if len(s.pending) == 0 {
		return s.check(ctx)
	}
	list := make([]counter, 0, len(s.pending))
	for _, c := range s.pending {
		list = append(list, c)
	}
	for len(list) > 0 {
		part := list[:min(batch, len(list))]
		list = list[len(part):]
		others, err := s.store(ctx, part)
		if err != nil {
			return err
		}
		for _, c := range part {
			delete(s.pending, c.Key)
		}
		if _, ok := s.ask(ctx, others); !ok {
			return nil
		}
	}
	return nil
}

// check asks the store whether it is there, if it was not asked for a while.
func (s *Store) check(ctx context.Context) error {
	if !s.away && time.Since(s.answered) < idleInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if err := s.remote.ping(ctx); err != nil {
		return err
	}
	s.answered = time.Now()
	return nil
}

// store writes counters to the store. It returns what other replicas have counted.
func (s *Store) store(ctx context.Context, part []counter) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	others, err := s.remote.exchange(ctx, s.replica, part)
	if err != nil {
		return nil, fmt.Errorf("exchange %d counters: %w", len(part), err)
	}
	s.answered = time.Now()
	return others, nil
}

// collect takes all counters that have changed, and forgets those that are over. Without an answer
// NGINX may be starting.
func (s *Store) collect(ctx context.Context) (ok bool) {
	for range MaxPending / batch {
		n, ok := s.ask(ctx, nil)
		if !ok {
			return false
		}
		if n < batch {
			break
		}
	}
	now := time.Now()
	for key, c := range s.pending {
		if c.isOver(now) {
			delete(s.pending, key)
		}
	}
	return true
}

// ask reports to NGINX what others have counted, and takes what has changed. n is how much.
func (s *Store) ask(ctx context.Context, others map[string]int64) (n int, ok bool) {
	var a answer
	if err := s.settings.Ask(ctx, question{others}, &a); err != nil {
		return 0, false
	}
	if a.Replica != s.replica {
		// NGINX was started again, with empty memory.
		s.replica = a.Replica
		clear(s.pending)
	}
	now := time.Now()
	for _, c := range a.Changed {
		if _, known := s.pending[c.Key]; known || len(s.pending) < MaxPending {
			c.noted = now
			s.pending[c.Key] = c
		}
	}
	return len(a.Changed), true
}
