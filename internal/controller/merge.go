package controller

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/internal/source"
)

// MergeSources runs several sources as one, until one of them fails. The first
// one delivers all existing objects, the others deliver what they are
// subscribed to.
func MergeSources(sources ...Source) Source {
	return func(ctx context.Context, deliver func(context.Context, []source.Change)) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, run := range sources {
			group.Go(func() error { return run(ctx, deliver) })
		}
		return group.Wait()
	}
}
