package controller

import (
	"context"

	"github.com/headgate/headgate/internal/model"
)

// fetchSpans fetches spans of requests until ctx ends. What it returns is closed then.
func (c *Controller) fetchSpans(ctx context.Context) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c.settings.Tracing != nil {
			c.settings.Tracing.Run(ctx, c.client.Spans)
		}
	}()
	return done
}

// configureTracing says how spans are exported from now on.
func (c *Controller) configureTracing(t model.Tracing) {
	if c.settings.Tracing != nil {
		c.settings.Tracing.Configure(t)
	}
}
