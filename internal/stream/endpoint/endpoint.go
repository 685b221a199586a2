// Package endpoint chooses the endpoints of a port in turn, and those that could not be connected to last.
package endpoint

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// avoidTime is how long an endpoint that could not be connected to comes after the others.
const avoidTime = 10 * time.Second

// A Table has the endpoints of a port, to be used in turn.
type Table struct {
	endpoints atomic.Pointer[[]netip.AddrPort]
	turn      atomic.Uint64

	// avoiding is the number of endpoints in avoided.
	avoiding atomic.Int32
	mu       sync.Mutex
	// avoided is until when endpoints come last.
	avoided map[netip.AddrPort]time.Time
}

// Set replaces the endpoints. Several instances don't begin with the same one.
func (t *Table) Set(endpoints []netip.AddrPort) {
	if t.endpoints.Swap(&endpoints) == nil {
		t.turn.Store(rand.Uint64N(1 << 32))
	}
}

// Next is the endpoint whose turn it is, apart from those to avoid and those that were
// tried. It is false if there is none that was not tried.
func (t *Table) Next(tried []netip.AddrPort) (netip.AddrPort, bool) {
	endpoints := *t.endpoints.Load()
	first := t.turn.Add(1)
	var last netip.AddrPort
	for i := range uint64(len(endpoints)) {
		e := endpoints[(first+i)%uint64(len(endpoints))]
		if contains(tried, e) {
			continue
		}
		if !t.avoids(e) {
			return e, true
		}
		if !last.IsValid() {
			last = e
		}
	}
	return last, last.IsValid()
}

func contains(list []netip.AddrPort, e netip.AddrPort) bool {
	for _, other := range list {
		if other == e {
			return true
		}
	}
	return false
}

// Has reports whether an endpoint is one of them.
func (t *Table) Has(e netip.AddrPort) bool { return contains(*t.endpoints.Load(), e) }

// Size is the number of endpoints.
func (t *Table) Size() int { return len(*t.endpoints.Load()) }

func (t *Table) avoids(e netip.AddrPort) bool {
	if t.avoiding.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	until, ok := t.avoided[e]
	if ok && time.Now().After(until) {
		delete(t.avoided, e)
		t.avoiding.Store(int32(len(t.avoided)))
		return false
	}
	return ok
}

// Failed has an endpoint come last for a while, Worked ends that.
func (t *Table) Failed(e netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.avoided == nil {
		t.avoided = map[netip.AddrPort]time.Time{}
	}
	now := time.Now()
	for other, until := range t.avoided {
		if now.After(until) {
			delete(t.avoided, other)
		}
	}
	t.avoided[e] = now.Add(avoidTime)
	t.avoiding.Store(int32(len(t.avoided)))
}

// Worked ends that.
func (t *Table) Worked(e netip.AddrPort) {
	if t.avoiding.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.avoided, e)
	t.avoiding.Store(int32(len(t.avoided)))
}
