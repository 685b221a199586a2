package backlog

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// bench builds the hosts of a backlog with a clock of its own.
type bench struct {
	*Backlog
	now   time.Time
	costs map[string]time.Duration
	order []string
}

func newBench(costs map[string]time.Duration) *bench {
	return &bench{Backlog: New(), now: time.Unix(1_800_000_000, 0), costs: costs}
}

// step builds one host, or waits until one may be built. It is false if none waits.
func (b *bench) step() bool {
	host, namespace, ok := b.Next(b.now)
	if !ok {
		at, waits := b.Due(b.now)
		b.now = at
		return waits
	}
	b.now = b.now.Add(b.costs[host])
	b.Built(host, namespace, b.costs[host], b.now)
	b.order = append(b.order, host)
	return true
}

func (b *bench) drain() {
	for b.step() {
	}
}

// TestTurns: namespaces get the same time, however long each of their hosts takes.
func TestTurns(t *testing.T) {
	b := newBench(map[string]time.Duration{})
	for i := range 100 {
		small, large := fmt.Sprint("small", i), fmt.Sprint("large", i)
		b.costs[small], b.costs[large] = time.Millisecond, 40*time.Millisecond
		b.Add(large, "evil", b.now)
		b.Add(small, "shop", b.now)
	}
	began := b.now
	for b.step() && b.order[len(b.order)-1] != "small99" {
	}
	if took := b.now.Sub(began); took > 240*time.Millisecond {
		t.Errorf("100 ms of one namespace took %v beside another's", took)
	}
	b.drain()
	if len(b.order) != 200 || !b.Empty() {
		t.Errorf("%d were built", len(b.order))
	}
	// Who had nothing to build for long saved nothing up.
	b.order = nil
	for i := range 10 {
		b.Add(fmt.Sprint("large", i), "evil", b.now)
		b.Add(fmt.Sprint("late", i), "late", b.now)
		b.costs[fmt.Sprint("late", i)] = 40 * time.Millisecond
	}
	b.drain()
	if n := countPrefix(b.order[:10], "late"); n < 4 || n > 6 {
		t.Errorf("a namespace that comes late has %d of the first 10 turns", n)
	}
}

func countPrefix(list []string, prefix string) (n int) {
	for _, text := range list {
		if len(text) >= len(prefix) && text[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}

// TestDearHostsWait: one that changes all the time takes a twentieth of the time.
func TestDearHostsWait(t *testing.T) {
	b := newBench(map[string]time.Duration{"dear": 100 * time.Millisecond, "cheap": time.Millisecond})
	built, longest := 0, time.Duration(0)
	for end := b.now.Add(time.Minute); b.now.Before(end); b.now = b.now.Add(10 * time.Millisecond) {
		b.Add("dear", "evil", b.now)
		b.Add("cheap", "evil", b.now)
		added := b.now
		for {
			host, namespace, ok := b.Next(b.now)
			if !ok {
				break
			}
			if b.now = b.now.Add(b.costs[host]); host == "dear" {
				built++
			} else {
				longest = max(longest, b.now.Sub(added))
			}
			b.Built(host, namespace, b.costs[host], b.now)
		}
	}
	if built < 25 || built > 31 {
		t.Errorf("a dear host was built %d times in a minute", built)
	}
	if longest > 110*time.Millisecond {
		t.Errorf("a cheap host of the same namespace took %v", longest)
	}
}

// TestOthersDontMakeAHostWait: its owner's changes come at once, although another namespace
// changes it all the time.
func TestOthersDontMakeAHostWait(t *testing.T) {
	b := newBench(map[string]time.Duration{"dear": 100 * time.Millisecond})
	b.Add("dear", "evil", b.now)
	b.step()
	b.Add("dear", "evil", b.now)
	if _, _, ok := b.Next(b.now); ok {
		t.Error("a dear host does not wait")
	}
	b.Add("dear", "shop", b.now)
	if host, namespace, ok := b.Next(b.now); !ok || host != "dear" || namespace != "shop" {
		t.Errorf("next is %q of %q, %v", host, namespace, ok)
	}
	b.step()
	if b.now = b.now.Add(time.Hour); !b.Empty() {
		t.Error("it is built twice for one change")
	}
	if _, _, ok := b.Next(b.now); ok || len(b.queues) > 0 {
		t.Errorf("there are queues left: %v", b.queues)
	}
}

// TestTheLongestWait: no host waits longer, however dear the hosts before it were.
func TestTheLongestWait(t *testing.T) {
	b := newBench(map[string]time.Duration{"dear": time.Minute, "other": time.Minute})
	for _, host := range []string{"dear", "other"} {
		b.Add(host, "evil", b.now)
		b.step()
	}
	b.Add("dear", "evil", b.now)
	if at, ok := b.Due(b.now); !ok || at.Sub(b.now) != LongestWait {
		t.Errorf("it waits for %v", at.Sub(b.now))
	}
}

// TestTurnsAreDeterministic: equal histories give equal orders.
func TestTurnsAreDeterministic(t *testing.T) {
	run := func() []string {
		b := newBench(map[string]time.Duration{})
		for i := range 200 {
			host := fmt.Sprint("h", i*7%40)
			b.costs[host] = time.Duration(i%5*20) * time.Millisecond
			b.Add(host, fmt.Sprint("n", i%9), b.now)
			if i%3 == 0 {
				b.step()
			}
		}
		b.drain()
		return b.order
	}
	first := run()
	for range 5 {
		if again := run(); !slices.Equal(first, again) {
			t.Fatalf("%v, then %v", first, again)
		}
	}
}

// TestRestSavesNothingUp: while the dear hosts of a namespace rest, it saves no time up for others of its hosts.
func TestRestSavesNothingUp(t *testing.T) {
	b := newBench(map[string]time.Duration{"dear": 60 * time.Millisecond})
	add := func(namespace string, n int) {
		for i := range n {
			host := fmt.Sprint(namespace, len(b.order), "-", i)
			b.costs[host] = 10 * time.Millisecond
			b.Add(host, namespace, b.now)
		}
	}
	b.Add("dear", "evil", b.now)
	b.drain()
	add("shop", 150)
	for range 100 {
		b.step()
	}
	before := len(b.order)
	add("evil", 50)
	for range 20 {
		b.step()
	}
	if n := len(slices.DeleteFunc(slices.Clone(b.order[before:]), func(host string) bool { return host[:4] == "shop" })); n < 8 || n > 12 {
		t.Errorf("%d of 20 turns were those of the namespace that rested", n)
	}
}
