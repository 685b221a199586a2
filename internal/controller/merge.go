package controller

import (
	"context"
	"errors"
	"sync"

	"github.com/headgate/headgate/internal/source"
)

// MergeSources runs several sources as one, until one of them fails. The first
// one delivers all existing objects, the others deliver what they are
// subscribed to.
func MergeSources(sources ...Source) Source {
	return func(ctx context.Context, deliver func(context.Context, []source.Change)) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		errs := make([]error, len(sources))
		var group sync.WaitGroup
		for i, run := range sources {
			group.Go(func() {
				if errs[i] = run(ctx, deliver); errs[i] != nil {
					cancel()
				}
			})
		}
		group.Wait()
		return errors.Join(errs...)
	}
}
