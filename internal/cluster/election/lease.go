package election

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// releaseLimit bounds the requests that release the Lease.
const releaseLimit = 2 * time.Second

// A candidate competes for the Lease. It records how long this process may lead.
//
// Candidates trust no clock but their own: one takes the Lease when it has not changed for the
// time for which it is valid.
type candidate struct {
	*Elector
	// lease is the newest version that is known, nil if there is none.
	lease *coordinationv1.Lease
	// seen is when it was first known with its present content.
	seen time.Time
	// leader is whom the log named last.
	leader string
	// failing has the verbs whose last request failed, which was logged.
	failing map[string]bool
}

// try takes the Lease if it is free, or renews it, and reports whether this process holds it then.
func (c *candidate) try(ctx context.Context) bool {
	// As long as no other process may take it, the version that this process wrote is the newest.
	if c.holds() && !c.expired() && c.write(ctx, "update", c.update) == nil {
		return true
	}
	lease, err := c.settings.Leases.Get(ctx, c.settings.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.write(ctx, "create", c.create) == nil
	}
	if c.report(ctx, "get", err); err != nil {
		return false
	}
	c.observe(lease)
	if holder := holderOf(lease); holder != "" && holder != c.settings.Identity && !c.expired() {
		return false
	}
	return c.write(ctx, "update", c.update) == nil
}

// observe takes a version of the Lease.
func (c *candidate) observe(lease *coordinationv1.Lease) {
	if c.lease == nil || !equality.Semantic.DeepEqual(c.lease.Spec, lease.Spec) {
		c.seen = time.Now()
	}
	c.lease = lease
	if holder := holderOf(lease); holder != "" && holder != c.leader {
		c.leader = holder
		c.settings.Log.Info("leader", "lease", c.String(), "is", holder, "this", c.settings.Identity)
	}
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (c *candidate) holds() bool { return holderOf(c.lease) == c.settings.Identity }

// expired reports whether the Lease may be taken from its holder.
func (c *candidate) expired() bool {
	valid := c.lease.Spec.LeaseDurationSeconds
	return valid == nil || time.Since(c.seen) >= time.Duration(*valid)*time.Second
}

func (c *candidate) create(ctx context.Context) (*coordinationv1.Lease, error) {
	return c.settings.Leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.settings.Namespace, Name: c.settings.Name},
		Spec:       c.spec(coordinationv1.LeaseSpec{}),
	}, metav1.CreateOptions{})
}

func (c *candidate) update(ctx context.Context) (*coordinationv1.Lease, error) {
	next := c.lease.DeepCopy()
	next.Spec = c.spec(c.lease.Spec)
	return c.settings.Leases.Update(ctx, next, metav1.UpdateOptions{})
}

// spec is what this process writes in place of was.
func (c *candidate) spec(was coordinationv1.LeaseSpec) coordinationv1.LeaseSpec {
	now, seconds := metav1.NowMicro(), int32(c.settings.TTL/time.Second)
	if was.HolderIdentity == nil || *was.HolderIdentity != c.settings.Identity {
		transitions := int32(0)
		if was.LeaseTransitions != nil {
			transitions = *was.LeaseTransitions + 1
		}
		was.HolderIdentity, was.AcquireTime, was.LeaseTransitions = &c.settings.Identity, &now, &transitions
	}
	was.LeaseDurationSeconds, was.RenewTime = &seconds, &now
	return was
}

// write writes the Lease. Other candidates wait for the TTL from when they saw
// it, which is later than the moment before it was sent.
func (c *candidate) write(ctx context.Context, verb string, do func(context.Context) (*coordinationv1.Lease, error)) error {
	until := time.Now().Add(c.settings.TTL * 3 / 4)
	lease, err := do(ctx)
	switch {
	case err == nil:
		c.until.Store(&until)
		c.observe(lease)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		// Another process has changed the Lease.
		c.until.Store(nil)
		return err
	}
	c.report(ctx, verb, err)
	return err
}

// release releases the Lease if this process holds it.
func (c *candidate) release() {
	if !c.Leads() {
		return
	}
	c.until.Store(nil)
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	lease, err := c.settings.Leases.Get(ctx, c.settings.Name, metav1.GetOptions{})
	if err == nil && holderOf(lease) != c.settings.Identity {
		return
	}
	if err == nil {
		now, none, second := metav1.NowMicro(), "", int32(1)
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.AcquireTime, lease.Spec.RenewTime = &none, &second, &now, &now
		_, err = c.settings.Leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		c.settings.Log.Warn("cannot release the Lease", "lease", c.String(), "error", err,
			"effect", "the next leader waits until it expires")
	}
}

// report logs the first of several failures, and the first success after them.
func (c *candidate) report(ctx context.Context, verb string, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	switch log := c.settings.Log; {
	case err != nil && !c.failing[verb]:
		log.Warn("cannot use the Lease of the leader election", "lease", c.String(), "verb", verb, "error", err,
			"effect", "this replica is not the leader: it serves requests, but writes no status of Ingresses")
	case err == nil && c.failing[verb]:
		log.Info("the Lease can be used again", "lease", c.String(), "verb", verb)
	}
	c.failing[verb] = err != nil
}

// String names the Lease.
func (c *candidate) String() string { return c.settings.Namespace + "/" + c.settings.Name }
