// Package election makes one of several replicas the leader, by a Lease in the
// cluster.
//
// It knows the Lease and the clock; what a leader does it leaves to the caller.
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

// DefaultTTL is how long a Lease counts where nothing else is said.
const DefaultTTL = 30 * time.Second

// Settings say what is competed for, and by whom.
type Settings struct {
	Leases coordinationv1client.LeasesGetter
	// Namespace and Name are those of the Lease. It is created if need be.
	Namespace, Name string
	// Identity tells this process from all that may be after the Lease.
	Identity string
	// TTL is how long the Lease counts after it was renewed: as long does it
	// take until another one leads when the leader dies. It is rounded up to
	// seconds; 0 and less stand for DefaultTTL.
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

// New makes an Elector that takes no part yet.
func New(s Settings) *Elector {
	if s.TTL <= 0 {
		s.TTL = DefaultTTL
	}
	// The Lease holds whole seconds, and less would be none.
	s.TTL = (s.TTL + time.Second - 1).Truncate(time.Second)
	return &Elector{settings: s}
}

// Leads tells whether this process may act as the leader at this moment. It is
// to be asked right before each act: a process that was stopped for a while
// learns from it that its time is over, before anything else tells it. It ends
// a quarter of the TTL before another one can lead, which is the time for what
// was begun to arrive.
func (e *Elector) Leads() bool {
	until := e.until.Load()
	if until == nil {
		return false
	}
	// A machine that slept has a monotonic clock that slept too, and one that
	// was set has a wall clock that lies: both have to agree.
	now := time.Now()
	return now.Before(*until) && now.Round(0).Before(until.Round(0))
}

// Run takes part until leave is closed or ctx ends. While this process is the
// leader lead runs, until its term ends, which is when the Lease was lost or
// could not be renewed; there may be another term later. One lead has returned
// before the next is called.
//
// When leave is closed, lead is to return by itself. The Lease is kept for it
// until then, and given up after it, so that the next leader need not wait.
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

// compete tries to become the leader, and returns when it was.
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
			OnStartedLeading: func(term context.Context) { e.lead(term, lead) },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != "" {
					e.settings.Log.Info("leader", "lease", lock.Describe(), "is", identity, "this", e.settings.Identity)
				}
			},
		},
	})
	if err != nil {
		panic("election: " + err.Error()) // settings are such that it takes them
	}
	// What went wrong is told by the lock, once.
	elector.Run(klog.NewContext(ctx, logr.Discard()))
	e.leading.Lock()
	defer e.leading.Unlock()
	if ctx.Err() != nil {
		lock.release()
	}
	e.until.Store(nil)
}

// lead leads for one term. It may come so late that the term is over.
func (e *Elector) lead(term context.Context, lead func(term context.Context)) {
	e.leading.Lock()
	defer e.leading.Unlock()
	if term.Err() == nil {
		lead(term)
	}
}
