package event

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// maxPerNamespace is how many notes of a namespace wait in a fairQueue,
	// maxWaiting how many in all.
	maxPerNamespace = 200
	maxWaiting      = 5000
)

// A queue holds notes that wait, in two queues that take turns, one for
// findings and one for actions, so that neither delays the other.
type queue struct {
	mu sync.Mutex
	// queues are by note.again; last is the one that had its turn.
	queues map[bool]*fairQueue
	last   bool
	filled chan struct{}
	// backoffs are namespaces whose notes wait, and until when.
	backoffs map[string]time.Time
}

// An attempt is a note, and how often it was tried.
type attempt struct {
	note
	tried int
}

// A fairQueue takes notes of all namespaces in turns.
type fairQueue struct {
	// turns are the namespaces with notes that wait, the next one first.
	turns   []string
	waiting map[string][]attempt
	known   sets.Set[note]
}

func newQueue() *queue {
	q := &queue{filled: make(chan struct{}, 1), backoffs: map[string]time.Time{}, queues: map[bool]*fairQueue{}}
	for _, again := range []bool{false, true} {
		q.queues[again] = &fairQueue{waiting: map[string][]attempt{}, known: sets.Set[note]{}}
	}
	return q
}

// put adds a note, unless it waits already. It returns false if the queue is
// full.
func (q *queue) put(n note) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.queues[n.again]
	if l.known.Has(n) {
		return true
	}
	if len(l.waiting[n.on.name.Namespace]) >= maxPerNamespace || len(l.known) >= maxWaiting {
		return false
	}
	l.add(attempt{note: n})
	select {
	case q.filled <- struct{}{}:
	default:
	}
	return true
}

// putBack adds a note that take returned, to be tried again after the others of
// its namespace, unless put added it meanwhile. It ignores the bounds.
func (q *queue) putBack(a attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.queues[a.again]; !l.known.Has(a.note) {
		l.add(a)
	}
}

// backOff makes the notes of a namespace wait.
func (q *queue) backOff(namespace string, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backoffs[namespace] = until
}

// take returns the next note. If there is none, it returns false and when to
// call again; zero means after the next put.
func (q *queue) take(now time.Time) (a attempt, again time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.backoffs, func(_ string, until time.Time) bool { return !now.Before(until) })
	for range q.queues {
		q.last = !q.last
		if a, ok := q.queues[q.last].take(q.backoffs); ok {
			return a, time.Time{}, true
		}
	}
	if len(q.backoffs) > 0 {
		again = slices.MinFunc(slices.Collect(maps.Values(q.backoffs)), time.Time.Compare)
	}
	return attempt{}, again, false
}

func (l *fairQueue) add(a attempt) {
	namespace := a.on.name.Namespace
	if len(l.waiting[namespace]) == 0 {
		l.turns = append(l.turns, namespace)
	}
	l.waiting[namespace] = append(l.waiting[namespace], a)
	l.known.Insert(a.note)
}

// take takes a note of the first namespace without a backoff.
func (l *fairQueue) take(backoffs map[string]time.Time) (attempt, bool) {
	turn := slices.IndexFunc(l.turns, func(namespace string) bool {
		_, waits := backoffs[namespace]
		return !waits
	})
	if turn < 0 {
		return attempt{}, false
	}
	namespace := l.turns[turn]
	l.turns = slices.Delete(l.turns, turn, turn+1)
	waiting := l.waiting[namespace]
	a := waiting[0]
	if l.waiting[namespace] = waiting[1:]; len(waiting) == 1 {
		delete(l.waiting, namespace)
	} else {
		l.turns = append(l.turns, namespace)
	}
	delete(l.known, a.note)
	return a, true
}
