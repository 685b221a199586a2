// Package backlog has the hosts that are still to be built, and says whose turn it is: namespaces get the same
// time, however many hosts each changes.
package backlog

import "time"

// Hosts are built in turns, since tenants decide how long it takes: a host may have
// thousands of paths, and change many times a second. All other units are built with the
// change that affects them.
const (
	// DearBuild is how long it may take to build a host, in processor time. One that took
	// longer is dear.
	DearBuild = 50 * time.Millisecond
	// DearRatio is how many times as long the dear hosts that a namespace changes wait
	// after one of them was built.
	DearRatio = 20
	// LongestWait is how long a host waits for that at most. So a guard or a denial that
	// is added to a dear host again and again comes into effect after this time.
	LongestWait = 10 * time.Second
	// Turn is how long hosts are built until the changes that came meanwhile are taken.
	Turn = 20 * time.Millisecond
)

// A Backlog has the hosts to build. They wait in the queues of the namespaces whose changes
// affect them, and not in that of the host's owner: a tenant who changes a host of another
// one neither spends the owner's time nor makes the owner wait. The namespace comes first that
// has used the least time of late.
//
// It has no clock: now only increases from call to call.
type Backlog struct {
	waiting map[string]*waiter // by host
	queues  map[string]*queue  // by namespace
	// dear are the hosts that took longer than DearBuild when they were built last.
	dear map[string]struct{}
	// used is where queues begin that were empty.
	used time.Duration
}

// A waiter is a host that waits to be built.
type waiter struct {
	host  string
	since time.Time
	in    map[string]struct{} // namespaces
	built bool
}

// A queue has the hosts that a namespace changed.
type queue struct {
	hosts, dear []*waiter
	used        time.Duration
	// rests is when dear hosts may be built again.
	rests time.Time
}

// New returns an empty backlog.
func New() *Backlog {
	return &Backlog{waiting: map[string]*waiter{}, queues: map[string]*queue{}, dear: map[string]struct{}{}}
}

// Add notes that a change of a namespace affects a host.
func (b *Backlog) Add(host, namespace string, now time.Time) {
	w := b.waiting[host]
	if w == nil {
		w = &waiter{host: host, since: now, in: map[string]struct{}{}}
		b.waiting[host] = w
	}
	if _, known := w.in[namespace]; known {
		return
	}
	w.in[namespace] = struct{}{}
	q := b.queues[namespace]
	if q == nil {
		q = &queue{used: b.used}
		b.queues[namespace] = q
	}
	if q.next(now) == nil {
		q.used = max(q.used, b.used)
	}
	if _, dear := b.dear[host]; dear {
		q.dear = append(q.dear, w)
	} else {
		q.hosts = append(q.hosts, w)
	}
}

// Next is the host to build now, and the namespace whose turn it is. It is false if none
// may be built.
func (b *Backlog) Next(now time.Time) (host, namespace string, ok bool) {
	var first *queue
	for name, q := range b.queues {
		switch w := q.next(now); {
		case w == nil && q.empty() && !now.Before(q.rests):
			delete(b.queues, name)
		case w == nil:
		case first == nil || q.used < first.used || q.used == first.used && name < namespace:
			first, host, namespace = q, w.host, name
		}
	}
	if first != nil {
		b.used = max(b.used, first.used)
	}
	return host, namespace, first != nil
}

// Built notes that a host was built for a namespace, and how long that took.
func (b *Backlog) Built(host, namespace string, took time.Duration, now time.Time) {
	if w := b.waiting[host]; w != nil {
		w.built = true
		delete(b.waiting, host)
	}
	delete(b.dear, host)
	if took > DearBuild {
		b.dear[host] = struct{}{}
	}
	q := b.queues[namespace]
	if q == nil {
		return
	}
	if q.used += took; took > DearBuild {
		q.rests = now.Add(DearRatio * took)
	}
}

// Due is when a host may be built, false if none waits.
func (b *Backlog) Due(now time.Time) (at time.Time, ok bool) {
	for _, q := range b.queues {
		if q.next(now) != nil {
			return now, true
		}
		if len(q.dear) > 0 {
			if first := q.until(q.dear[0]); !ok || first.Before(at) {
				at, ok = first, true
			}
		}
	}
	return at, ok
}

// Size is how many hosts wait.
func (b *Backlog) Size() int { return len(b.waiting) }

// Waits reports whether a host does.
func (b *Backlog) Waits(host string) bool { return b.waiting[host] != nil }

// Empty reports whether no host waits.
func (b *Backlog) Empty() bool { return len(b.waiting) == 0 }

// next is the host of the queue that may be built now, nil for none.
func (q *queue) next(now time.Time) *waiter {
	q.hosts, q.dear = unbuilt(q.hosts), unbuilt(q.dear)
	switch {
	case len(q.hosts) > 0:
		return q.hosts[0]
	case len(q.dear) > 0 && !now.Before(q.until(q.dear[0])):
		return q.dear[0]
	}
	return nil
}

// until is when a dear host may be built.
func (q *queue) until(w *waiter) time.Time {
	if longest := w.since.Add(LongestWait); longest.Before(q.rests) {
		return longest
	}
	return q.rests
}

func (q *queue) empty() bool { return len(q.hosts)+len(q.dear) == 0 }

func unbuilt(list []*waiter) []*waiter {
	for len(list) > 0 && list[0].built {
		list = list[1:]
	}
	return list
}
