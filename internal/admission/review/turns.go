package review

import (
	"context"
	"fmt"
	"sync"
)

// turns let one review of each namespace at a time wait for the store: so a namespace with
// hosts that take long to build delays others by one of them.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	// users have the turn, or wait for it.
	users int
	taken chan struct{}
}

// take waits for the turn of a namespace. leave ends it.
func (t *turns) take(ctx context.Context, namespace string) (leave func(), err error) {
	t.mu.Lock()
	of := t.of[namespace]
	if of == nil {
		of = &turn{taken: make(chan struct{}, 1)}
		t.of[namespace] = of
	}
	of.users++
	t.mu.Unlock()
	done := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(t.of, namespace)
		}
	}
	select {
	case of.taken <- struct{}{}:
		return func() {
			<-of.taken
			done()
		}, nil
	case <-ctx.Done():
		done()
		return nil, fmt.Errorf("wait for other Ingresses of namespace %s: %w", namespace, ctx.Err())
	}
}
