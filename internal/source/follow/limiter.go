package follow

import (
	"context"
	"sync"
)

// shares is how many owners it takes to fill a lane.
const shares = 4

// A lane bounds how much is fetched at a time, in all and for one owner: one
// that nothing answers to keeps back its own jobs only.
type limiter struct {
	slots chan struct{}

	mu     sync.Mutex
	owners map[string]*share
}

// A share is what one owner may have of a lane.
type share struct {
	slots chan struct{}
	// users are those who fetch or wait; the share is forgotten with the last.
	users int
}

func newLimiter(atOnce int) *limiter {
	return &limiter{slots: make(chan struct{}, atOnce), owners: map[string]*share{}}
}

// enter waits for the owner's turn. If ctx ends before, it returns false;
// otherwise leave must follow.
func (l *limiter) acquire(ctx context.Context, owner string) bool {
	l.mu.Lock()
	s := l.owners[owner]
	if s == nil {
		s = &share{slots: make(chan struct{}, max(1, cap(l.slots)/shares))}
		l.owners[owner] = s
	}
	s.users++
	l.mu.Unlock()
	// The own share comes first, so that few of an owner's stand in the way of
	// others.
	if !take(ctx, s.slots) {
		l.forget(owner, s)
		return false
	}
	if !take(ctx, l.slots) {
		<-s.slots
		l.forget(owner, s)
		return false
	}
	return true
}

func take(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave lets the next one in.
func (l *limiter) release(owner string) {
	l.mu.Lock()
	s := l.owners[owner]
	l.mu.Unlock()
	<-l.slots
	<-s.slots
	l.forget(owner, s)
}

func (l *limiter) forget(owner string, s *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.owners, owner)
	}
}
