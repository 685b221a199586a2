package stream

import (
	"sync"
	"time"
)

// logInterval is how often clients can make Headgate log that their header is missing.
const logInterval = time.Second

// A seldom lets one line of the log pass in each logInterval.
type seldom struct {
	mu      sync.Mutex
	next    time.Time
	leftOut int
}

// pass reports whether a line may be logged now, and how many were left out before it.
func (s *seldom) pass(now time.Time) (leftOut int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		s.leftOut++
		return 0, false
	}
	leftOut, s.leftOut, s.next = s.leftOut, 0, now.Add(logInterval)
	return leftOut, true
}
