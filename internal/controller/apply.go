package controller

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// apply pushes the units that differ, and checks whether NGINX must be
// reloaded. A failed push is retried.
func (c *Controller) apply(ctx context.Context) {
	if c.turnsAreOver() {
		c.decideProfiles()
		c.considerReload(ctx)
	}
	held, err := c.pushAll(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.metrics.PushFailures.Inc()
			c.retry.Later()
			c.log.Warn("push failed", "error", err, "again_in", c.retry.Pause)
		}
		return
	}
	c.retry.Done()
	c.held = held
	c.noteServed()
	c.noteWaiting()
}

// turnsAreOver reports whether no host can be built now. Until then a reload waits, but
// not long, so that it has the profiles of all hosts of a change.
func (c *Controller) turnsAreOver() bool {
	now := time.Now()
	if !c.canBuild(now) {
		c.defersReload = time.Time{}
		return true
	}
	if c.defersReload.IsZero() {
		c.defersReload = now
	}
	return now.Sub(c.defersReload) > reloadDeferral
}

// canBuild reports whether there is a host to build, and not only ones that wait because
// they are dear.
func (c *Controller) canBuild(now time.Time) bool {
	at, ok := c.backlog.Due(now)
	return ok && !at.After(now)
}

const reloadDeferral = time.Second

// noteServed records that everything taken is served, if it is, or at least all that
// need not wait for a reload that is held back, or because it is dear to build.
func (c *Controller) noteServed() {
	isPushed := c.held == 0 && !c.reload.pending()
	if isPushed && c.backlog.Empty() {
		c.served.Store(int64(c.taken))
	}
	if (isPushed || c.reload.heldBy != "") && !c.canBuild(time.Now()) {
		c.applied.Store(int64(c.taken))
		c.noteApplied()
	}
}

// pushAll pushes all units except those that are held. The first time, and after
// a restart of NGINX, it then reports to the data plane that the load is
// complete.
func (c *Controller) pushAll(ctx context.Context) (held int, err error) {
	if !c.ready.Load() {
		if err := c.checkInstance(ctx); err != nil {
			return 0, err
		}
	}
	var coming []plan.Static
	if c.reload.next != nil {
		coming = append(coming, *c.reload.next)
	}
	changes, held := c.desired.Delta(c.static, coming...)
	if err := c.push(ctx, changes); err != nil {
		return held, err
	}
	if c.ready.Load() {
		return held, nil
	}
	return held, c.endLoad(ctx)
}

// checkInstance finds out whether NGINX is still the process whose memory was
// filled. The memory of a new process is empty.
func (c *Controller) checkInstance(ctx context.Context) error {
	state, err := c.client.State(ctx)
	if err != nil {
		return err
	}
	if state.Instance != c.instance {
		c.instance = state.Instance
		c.desired.Forget()
	}
	return nil
}

// endLoad makes the data plane serve requests, unless NGINX was restarted
// since the push began.
func (c *Controller) endLoad(ctx context.Context) error {
	state, err := c.client.State(ctx)
	if err != nil {
		return err
	}
	if state.Instance != c.instance {
		return errors.New("NGINX was restarted during the load")
	}
	if c.leaving.Load() {
		// NGINX was restarted since Leave, and does not know of it.
		if err := c.client.Leaving(ctx); err != nil {
			return err
		}
	}
	if err := c.client.Loaded(ctx); err != nil {
		return err
	}
	c.desired.Restored()
	c.ready.Store(true)
	select {
	case <-c.serving:
	default:
		close(c.serving)
	}
	return nil
}

func (c *Controller) push(ctx context.Context, changes []unit.Change) error {
	result, err := c.client.Push(ctx, c.static.Dictionaries.Number, c.static.Generation, changes)
	c.desired.Applied(changes[:result.Applied])
	c.settings.History.Push(changes[:result.Applied])
	bytes := 0
	for _, change := range changes[:result.Applied] {
		c.metrics.Pushed.WithLabelValues(string(change.Kind)).Inc()
		bytes += len(change.Payload)
	}
	if result.Applied > 0 {
		c.metrics.PushBytes.Observe(float64(bytes))
	}
	c.watchMemory(ctx, result, errors.Is(err, dataplane.ErrFull))
	return err
}

// watchMemory makes the shared memory grow before it is full.
func (c *Controller) watchMemory(ctx context.Context, result dataplane.Result, full bool) {
	if result.Applied == 0 && !full {
		return
	}
	m := result.Memory
	if full {
		state, err := c.client.State(ctx)
		if err != nil {
			return
		}
		m = state.Memory
	}
	for name, zone := range map[string]dataplane.Zone{"units": m.Units, "versions": m.Versions, "certificates": m.Certificates} {
		c.metrics.Memory.WithLabelValues(name, "used").Set(float64(zone.Capacity - zone.Free))
		c.metrics.Memory.WithLabelValues(name, "free").Set(float64(zone.Free))
	}
	if c.reload.larger != nil {
		return
	}
	used := nginxconf.Usage{
		Units:        m.Units.Capacity - m.Units.Free,
		Versions:     m.Versions.Capacity - m.Versions.Free,
		Certificates: m.Certificates.Capacity - m.Certificates.Free,
	}
	if c.reload.larger = c.static.Dictionaries.Grown(used, full); c.reload.larger != nil {
		c.considerReload(ctx)
	}
}
