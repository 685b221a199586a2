package controller

import (
	"context"
	"errors"
	"sync"

	"github.com/headgate/headgate/internal/source"
)

// Together runs sources as one, until one of them fails. The first of them
// delivers everything there is; the others deliver only what they were told to
// want.
func Together(sources ...Source) Source {
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
