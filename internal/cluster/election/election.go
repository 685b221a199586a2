// Package election makes one of several replicas the leader, by a Lease in the
// cluster.
//
// It knows the Lease and the clock. The caller decides what a leader does.
package election

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// DefaultTTL is the default for how long a Lease is valid.
const DefaultTTL = 30 * time.Second

// Settings name the Lease and the candidate.
type Settings struct {
	Leases coordinationv1client.LeasesGetter
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
	lock := &lock{elector: e, failing: map[string]bool{}, LeaseLock: resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.settings.Namespace, Name: e.settings.Name},
		Client:     e.settings.Leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.settings.Identity},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: e.settings.Name,
		LeaseDuration: e.settings.TTL, RenewDeadline: e.settings.TTL / 2, RetryPeriod: e.settings.TTL / 4,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) {
				e.leading.Lock()
				defer e.leading.Unlock()
				if term.Err() == nil {
					lead(term)
				}
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != "" {
					e.settings.Log.Info("leader", "lease", lock.Describe(), "is", identity, "this", e.settings.Identity)
				}
			},
		},
	})
	if err != nil {
		panic("election: " + err.Error()) // New makes the settings valid
	}
	// The lock logs errors, once each.
	elector.Run(klog.NewContext(ctx, logr.Discard()))
	e.leading.Lock()
	defer e.leading.Unlock()
	if ctx.Err() != nil {
		lock.release()
	}
	e.until.Store(nil)
}
