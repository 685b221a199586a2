package edge

import (
	"context"
	"time"
)

// Leave prepares for the end of NGINX. From now on health checks fail, those on
// NGINX's ports too, and clients are asked to close their connections. It returns
// after the grace period, which is at least Timing.Drain; it returns at once when
// ctx ends or if nothing was ever served. Then NGINX may be stopped. Changes are
// applied as before, until Run's context ends.
//
// It may be called during Run, and after it.
func (e *Edge) Leave(ctx context.Context, grace time.Duration) {
	e.leaving.Store(true)
	select {
	case <-e.serving:
	default:
		return
	}
	if err := e.client.Leaving(ctx); err != nil && ctx.Err() == nil {
		// After a restart, NGINX gets this before it serves.
		e.settings.Log.Warn("asking clients to leave failed", "error", err)
	}
	select {
	case <-time.After(max(grace, e.settings.Timing.Drain)):
	case <-ctx.Done():
	}
}
