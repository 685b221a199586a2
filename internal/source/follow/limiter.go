package follow

import (
	"context"
	"sync"
)

// shares is how many owners it takes to fill a limiter.
const shares = 4

// A limiter bounds how many jobs fetch at a time, in all and per owner: an owner
// whose requests are not answered delays its own jobs only.
type limiter struct {
	slots chan struct{}

	mu     sync.Mutex
	owners map[string]*share
}

// A share is the part of a limiter that one owner may have.
type share struct {
	slots chan struct{}
	// users is the number of jobs that fetch or wait. The share of an owner
	// without any is deleted.
	users int
}

func newLimiter(atOnce int) *limiter {
	return &limiter{slots: make(chan struct{}, atOnce), owners: map[string]*share{}}
}

// acquire waits for a slot, which release frees. If ctx ends before, release is
// nil.
func (l *limiter) acquire(ctx context.Context, owner string) (release func()) {
	l.mu.Lock()
	s := l.owners[owner]
	if s == nil {
		s = &share{slots: make(chan struct{}, max(1, cap(l.slots)/shares))}
		l.owners[owner] = s
	}
	s.users++
	l.mu.Unlock()
	// The share of the owner comes first: otherwise its jobs would wait with slots
	// that others could use.
	if take(ctx, s.slots) {
		if take(ctx, l.slots) {
			return func() {
				<-l.slots
				<-s.slots
				l.forget(owner, s)
			}
		}
		<-s.slots
	}
	l.forget(owner, s)
	return nil
}

func take(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *limiter) forget(owner string, s *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.owners, owner)
	}
}
