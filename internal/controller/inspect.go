package controller

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
)

// A Snapshot is what was taken and built by now. It must not be changed.
type Snapshot struct {
	Store   *store.Store
	Builder *build.Builder
	// BoundProfiles puts what is served in place of the profiles that a host
	// asks for.
	BoundProfiles func(*model.Host) []finding.Finding
	Findings      []finding.Finding
}

// Inspect calls look between two changes, while nothing of the Snapshot moves.
// Changes wait for it. The error is for a controller that has no time, and look
// was not called then: it can be tried again later.
func (c *Controller) Inspect(ctx context.Context, look func(Snapshot)) error {
	done := make(chan struct{})
	question := func() {
		defer close(done)
		look(Snapshot{c.store, c.builder, c.desired.BoundProfiles, c.settings.Ledger.All()})
	}
	select {
	case c.questions <- question:
	case <-ctx.Done():
		return fmt.Errorf("wait for the controller: %w", ctx.Err())
	}
	<-done
	return nil
}
