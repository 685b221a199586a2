package publisher

import (
	"maps"
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
	// lagging are edges whose streams ended while they lacked changes, by name: when they connect again, they are not
	// waited for any longer than before.
	lagging map[string]lag
	// behind is how many lack changes, and awaited how many of them are not slow.
	behind, awaited int
}

// A member is an edge that has all changes up to a version of the Store.
type member struct {
	name string
	at   uint64
	lag
}

// A lag is that of an edge that lacks changes.
type lag struct {
	// since is when it began to lack some, and slow is set once that was long ago. left is when its stream ended.
	since time.Time
	slow  bool
	left  time.Time
}

const (
	// lagKept is how long the lag of an edge is kept that has gone, and maxLags of how many.
	lagKept = time.Minute
	maxLags = 10_000
)

// publish sets what edges are to have. It reports whether none is waited for.
func (e *edges) publish(at uint64) (all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, m := range e.members {
		if m.at >= e.at && m.at < at {
			m.lag = lag{since: now}
			e.behind++
			e.awaited++
		}
	}
	e.at = at
	return e.awaited == 0
}

// add notes an edge that has opened a stream, and has nothing yet.
func (e *edges) add(stream int64, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	m := &member{name: name, lag: e.lagOf(name, now)}
	e.members[stream] = m
	delete(e.lagging, name)
	if m.at >= e.at {
		return
	}
	m.slow = now.Sub(m.since) >= slowAfter
	e.behind++
	if !m.slow {
		e.awaited++
	}
}

// lagOf is that of an edge which connects: the one that it has already, if any.
func (e *edges) lagOf(name string, now time.Time) lag {
	if known, ok := e.lagging[name]; ok {
		return known
	}
	for _, m := range e.members {
		if m.name == name && m.at < e.at {
			return m.lag
		}
	}
	return lag{since: now}
}

// set notes what the edge of a stream has. It reports whether that was the last one that was waited for. One that
// still lacks changes is as slow as before.
func (e *edges) set(stream int64, at uint64) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[stream]
	if m == nil {
		return false
	}
	was := m.at < e.at
	m.at = at
	if !was || at < e.at {
		return false
	}
	return e.has(m)
}

// has notes that a member is not waited for any more, and reports whether that was the last one.
func (e *edges) has(m *member) (last bool) {
	if e.behind--; m.slow {
		return false
	}
	e.awaited--
	return e.awaited == 0
}

// remove notes the end of a stream, and reports the same.
func (e *edges) remove(stream int64) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.members[stream]
	if m == nil {
		return false
	}
	delete(e.members, stream)
	if m.at >= e.at {
		return false
	}
	if len(e.lagging) < maxLags {
		m.left = time.Now()
		e.lagging[m.name] = m.lag
	}
	return e.has(m)
}

// look finds the edges that are slow by now, and reports the same.
func (e *edges) look(now time.Time) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.lagging, func(_ string, l lag) bool { return now.Sub(l.left) >= lagKept })
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
