package edge

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// Apply pushes the units that differ, and checks whether NGINX must be
// reloaded. A failed push is retried.
func (e *Edge) Apply(ctx context.Context) {
	e.configurePassthrough()
	if e.turnsAreOver() {
		e.builder.Rebuild(e.desired.Rebound())
		e.considerReload(ctx)
	}
	held, err := e.pushAll(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.settings.Metrics.PushFailures.Inc()
			pause := e.retry.Next()
			e.again.stop()
			e.again = e.after(pause, e.Apply)
			e.settings.Log.Warn("push failed", "error", err, "again_in", pause)
			e.builder.Unpushed(err)
		}
		return
	}
	e.retry.Done()
	e.again.stop()
	e.held, e.unpushed = held, false
	e.noteServed()
	e.noteWaiting()
}

// turnsAreOver reports whether no host can be built now. Until then a reload waits, but
// not long, so that it has the profiles of all hosts of a change.
func (e *Edge) turnsAreOver() bool {
	now := time.Now()
	if !e.builder.CanBuild() {
		e.defersReload = time.Time{}
		return true
	}
	if e.defersReload.IsZero() {
		e.defersReload = now
	}
	return now.Sub(e.defersReload) > reloadDeferral
}

const reloadDeferral = time.Second

// noteServed reports whether everything is served, or at least all that need not wait for a reload
// that is held back.
func (e *Edge) noteServed() {
	if e.unpushed {
		return // A push is about to be made, or to be repeated.
	}
	e.builder.Pushed(e.held == 0 && !e.reload.pending(), e.reload.heldBy != "")
}

// pushAll pushes all units except those that are held. The first time, and after
// a restart of NGINX, it then reports to the data plane that the load is
// complete.
func (e *Edge) pushAll(ctx context.Context) (held int, err error) {
	if !e.ready.Load() {
		if err := e.checkInstance(ctx); err != nil {
			return 0, err
		}
	}
	var coming []plan.Static
	if e.reload.next != nil {
		coming = append(coming, *e.reload.next)
	}
	changes, held := e.desired.Delta(e.static, coming...)
	if err := e.push(ctx, changes); err != nil {
		return held, err
	}
	if e.ready.Load() {
		return held, nil
	}
	return held, e.endLoad(ctx)
}

// checkInstance finds out whether NGINX is still the process whose memory was
// filled. The memory of a new process is empty.
func (e *Edge) checkInstance(ctx context.Context) error {
	state, err := e.client.State(ctx)
	if err != nil {
		return err
	}
	if state.Instance != e.instance {
		e.instance = state.Instance
		e.desired.Forget()
	}
	return nil
}

// endLoad makes the data plane serve requests, unless NGINX was restarted
// since the push began.
func (e *Edge) endLoad(ctx context.Context) error {
	state, err := e.client.State(ctx)
	if err != nil {
		return err
	}
	if state.Instance != e.instance {
		return errors.New("NGINX was restarted during the load")
	}
	if e.leaving.Load() {
		// NGINX was restarted since Leave, and does not know of it.
		if err := e.client.Leaving(ctx); err != nil {
			return err
		}
	}
	if err := e.client.Loaded(ctx); err != nil {
		return err
	}
	e.desired.Restored()
	e.ready.Store(true)
	select {
	case <-e.serving:
	default:
		close(e.serving)
	}
	return nil
}

func (e *Edge) push(ctx context.Context, changes []unit.Change) error {
	result, err := e.client.Push(ctx, e.static.Dictionaries.Number, e.static.Generation, changes)
	e.desired.Applied(changes[:result.Applied])
	e.settings.History.Push(changes[:result.Applied])
	bytes := 0
	for _, change := range changes[:result.Applied] {
		e.settings.Metrics.Pushed.WithLabelValues(string(change.Kind)).Inc()
		bytes += len(change.Payload)
	}
	if result.Applied > 0 {
		e.settings.Metrics.PushBytes.Observe(float64(bytes))
	}
	e.watchMemory(ctx, result, errors.Is(err, dataplane.ErrFull))
	return err
}

// watchMemory makes the shared memory grow before it is full.
func (e *Edge) watchMemory(ctx context.Context, result dataplane.Result, full bool) {
	if result.Applied == 0 && !full {
		return
	}
	m := result.Memory
	if full {
		state, err := e.client.State(ctx)
		if err != nil {
			return
		}
		m = state.Memory
	}
	for name, zone := range map[string]dataplane.Zone{"units": m.Units, "versions": m.Versions, "certificates": m.Certificates} {
		e.settings.Metrics.Memory.WithLabelValues(name, "used").Set(float64(zone.Capacity - zone.Free))
		e.settings.Metrics.Memory.WithLabelValues(name, "free").Set(float64(zone.Free))
	}
	if e.reload.larger != nil {
		return
	}
	used := nginxconf.Usage{
		Units:        m.Units.Capacity - m.Units.Free,
		Versions:     m.Versions.Capacity - m.Versions.Free,
		Certificates: m.Certificates.Capacity - m.Certificates.Free,
	}
	if e.reload.larger = e.static.Dictionaries.Grown(used, full); e.reload.larger != nil {
		e.considerReload(ctx)
	}
}
