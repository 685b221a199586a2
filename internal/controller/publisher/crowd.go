package publisher

import (
	"sync"
	"time"
)

// slowAfter is how long an edge is waited for that takes nothing.
const slowAfter = 10 * time.Second

// A crowd is the edges that are connected, and what they have. Its methods may be called by several goroutines:
// hundreds of edges acknowledge a change, and who makes the next one does not wait for them.
type crowd struct {
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
func (c *crowd) publish(at uint64) (all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, m := range c.members {
		if m.at >= c.at && m.at < at {
			m.since = now
			c.behind++
			c.awaited++
		}
	}
	c.at = at
	return c.awaited == 0
}

// set notes what the edge of a stream has. It reports whether that was the last one that was waited for.
func (c *crowd) set(stream int64, at uint64) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last = c.drop(stream)
	m := &member{at: at}
	c.members[stream] = m
	if at < c.at {
		m.since = time.Now()
		c.behind++
		c.awaited++
		last = false
	}
	return last
}

// remove notes the end of a stream, and reports the same.
func (c *crowd) remove(stream int64) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drop(stream)
}

// drop forgets a member.
func (c *crowd) drop(stream int64) (last bool) {
	m := c.members[stream]
	if m == nil {
		return false
	}
	delete(c.members, stream)
	if m.at >= c.at {
		return false
	}
	if c.behind--; m.slow {
		return false
	}
	c.awaited--
	return c.awaited == 0
}

// look finds the edges that are slow by now, and reports the same.
func (c *crowd) look(now time.Time) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaited == 0 {
		return false
	}
	for _, m := range c.members {
		if m.at < c.at && !m.slow && now.Sub(m.since) >= slowAfter {
			m.slow = true
			c.awaited--
		}
	}
	return c.awaited == 0
}

// hasAll reports whether no edge is waited for.
func (c *crowd) hasAll() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awaited == 0
}

// numbers are how many have all changes, and how many lack some.
func (c *crowd) numbers() (current, behind int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.members) - c.behind, c.behind
}
