package controller

import (
	"context"
	"sync"
)

// fetchReports fetches what workers report of requests until ctx ends. wait waits until that is
// over.
func (c *Controller) fetchReports(ctx context.Context) (wait func()) {
	var fetching sync.WaitGroup
	if t := c.settings.Traffic; t != nil {
		fetching.Go(func() { t.Run(ctx, c.client.Traffic) })
	}
	if t := c.settings.Tracing; t != nil {
		fetching.Go(func() { t.Run(ctx, c.client.Spans) })
	}
	return fetching.Wait
}
