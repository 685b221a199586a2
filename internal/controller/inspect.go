package controller

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// A Snapshot is what has been taken and built so far. It must not be changed.
type Snapshot struct {
	Store   *store.Store
	Builder *build.Builder
	// BoundProfiles replaces the profiles of a host by those that are served.
	BoundProfiles func(*model.Host) []finding.Finding
	Findings      []finding.Finding
	// AppliedNames are the names of the units of a kind that NGINX has, sorted.
	AppliedNames func(unit.Kind) []string
}

// Inspect calls look between two changes, while the Snapshot does not change.
// Changes wait for it. If the controller is busy, it returns an error and look is
// not called; the caller may retry later.
func (c *Controller) Inspect(ctx context.Context, look func(Snapshot)) error {
	done := make(chan struct{})
	call := func() {
		defer close(done)
		look(Snapshot{c.store, c.builder, c.edge.BoundProfiles, c.settings.Tracker.All(), c.edge.AppliedNames})
	}
	select {
	case c.calls <- call:
	case <-ctx.Done():
		return fmt.Errorf("wait for the controller: %w", ctx.Err())
	}
	<-done
	return nil
}
