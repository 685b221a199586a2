package controller

import (
	"context"
	"time"
)

// Leave has all who send requests go elsewhere: health checks fail from now
// on, those on NGINX's ports too, and clients are asked to leave their
// connections. It returns after the grace period, not before they had time to,
// and at once when ctx ends or if nothing was ever served. Then NGINX may be
// ended. Until Run is told to end, changes are served as ever.
//
// It may be called while Run goes on, and after.
func (c *Controller) Leave(ctx context.Context, grace time.Duration) {
	c.leaving.Store(true)
	select {
	case <-c.serving:
	default:
		return
	}
	if err := c.client.Leaving(ctx); err != nil && ctx.Err() == nil {
		// If NGINX is started anew it hears of it before it serves.
		c.log.Warn("ask clients to leave", "error", err)
	}
	select {
	case <-time.After(max(grace, c.settings.Timing.Drain)):
	case <-ctx.Done():
	}
}
