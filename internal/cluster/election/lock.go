package election

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// releaseLimit bounds the requests that release the Lease.
const releaseLimit = 2 * time.Second

// A lock is the Lease. It records how long this process may lead.
type lock struct {
	resourcelock.LeaseLock
	elector *Elector
	// failing has the verbs whose last request failed, which was logged.
	failing map[string]bool
}

var _ resourcelock.Interface = (*lock)(nil)

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	if !apierrors.IsNotFound(err) {
		l.report(ctx, "get", err)
	}
	return record, raw, err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "create", record, l.LeaseLock.Create)
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "update", record, l.LeaseLock.Update)
}

// write writes the Lease. Other candidates wait for the TTL from when they saw
// it, which is later than the moment before it was sent.
func (l *lock) write(ctx context.Context, verb string, record resourcelock.LeaderElectionRecord,
	do func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	until := time.Now().Add(l.elector.settings.TTL * 3 / 4)
	err := do(ctx, record)
	switch {
	case err == nil:
		l.elector.until.Store(&until)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		// Another process has changed the Lease.
		l.elector.until.Store(nil)
		return err
	}
	l.report(ctx, verb, err)
	return err
}

// release releases the Lease if this process holds it.
func (l *lock) release() {
	if !l.elector.Leads() {
		return
	}
	l.elector.until.Store(nil)
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	record, _, err := l.LeaseLock.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		return
	}
	if err == nil {
		now := metav1.Now()
		err = l.LeaseLock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now, LeaderTransitions: record.LeaderTransitions,
		})
	}
	if err != nil {
		l.elector.settings.Log.Warn("cannot release the Lease", "lease", l.Describe(), "error", err,
			"effect", "the next leader waits until it expires")
	}
}

// report logs the first of several failures, and the first success after them.
func (l *lock) report(ctx context.Context, verb string, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	switch log := l.elector.settings.Log; {
	case err != nil && !l.failing[verb]:
		log.Warn("cannot use the Lease of the leader election", "lease", l.Describe(), "verb", verb, "error", err,
			"effect", "this replica is not the leader: it serves requests, but writes no status of Ingresses")
	case err == nil && l.failing[verb]:
		log.Info("the Lease can be used again", "lease", l.Describe(), "verb", verb)
	}
	l.failing[verb] = err != nil
}
