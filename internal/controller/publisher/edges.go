package publisher

import (
	"sync"
	"time"
)

// slowAfter is how long an edge is waited for that takes nothing.
const slowAfter = 10 * time.Second

// edges are those that are connected, and what they have. Its methods may be called by several goroutines:
// hundreds of edges acknowledge a change, and who makes the next one does not wait for them.
type edges struct {
	mu sync.Mutex
	// at is the version of the Store that edges are to have, and members are the edges of each stream.
	at      uint64
	members map[int64]*member
	// behind is how many lack changes, and awaited how many of them are not slow.
	behind, awaited int
}

// A member is an edge that has all changes up to a version of the Store.
type member struct {
	at uint64
	// since is when it began to lack the next one, and slow is set once that was long ago.
	since time.Time
	slow  bool
}

// publish sets what edges are to have. It reports whether none is waited for.
func (e *edges) publish(at uint64) (all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, m := range e.members {
		if m.at >= e.at && m.at < at {
			m.since = now
			e.behind++
			e.awaited++
		}
	}
	e.at = at
	return e.awaited == 0
}

// set notes what the edge of a stream has. It reports whether that was the last one that was waited for.
func (e *edges) set(stream int64, at uint64) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last = e.drop(stream)
	m := &member{at: at}
	e.members[stream] = m
	if at < e.at {
		m.since = time.Now()
		e.behind++
		e.awaited++
		last = false
	}
	return last
}

// remove notes the end of a stream, and reports the same.
func (e *edges) remove(stream int64) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drop(stream)
}

// drop forgets a member.
func (e *edges) drop(stream int64) (last bool) {
	m := e.members[stream]
	if m == nil {
		return false
	}
	delete(e.members, stream)
	if m.at >= e.at {
		return false
	}
	if e.behind--; m.slow {
		return false
	}
	e.awaited--
	return e.awaited == 0
}

// look finds the edges that are slow by now, and reports the same.
func (e *edges) look(now time.Time) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.awaited == 0 {
		return false
	}
	for _, m := range e.members {
		if m.at < e.at && !m.slow && now.Sub(m.since) >= slowAfter {
			m.slow = true
			e.awaited--
		}
	}
	return e.awaited == 0
}

// hasAll reports whether no edge is waited for.
func (e *edges) hasAll() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.awaited == 0
}

// numbers are how many have all changes, and how many lack some.
func (e *edges) numbers() (current, behind int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.members) - e.behind, e.behind
}
