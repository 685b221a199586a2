package source

import (
	"context"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Queue takes changes without waiting, and hands them over in batches. Of
// several changes of one object it keeps the newest.
type Queue struct {
	mu      sync.Mutex
	changes []Change
	places  map[place]int
	// puts counts calls of Put.
	puts int
	// delivered are closed once the current content of the queue is delivered.
	delivered []chan struct{}
	filled    chan struct{}
}

// A place identifies an object in the queue.
type place struct {
	kind reflect.Type
	name types.NamespacedName
}

const (
	// quiet is how long no change must come before Collect returns a batch,
	// longest is the longest delay of a batch.
	quiet   = time.Millisecond
	longest = 50 * time.Millisecond
)

// NewQueue makes an empty Queue.
func NewQueue() *Queue {
	return &Queue{places: map[place]int{}, filled: make(chan struct{}, 1)}
}

// Put adds changes. It does not wait.
func (q *Queue) Put(changes ...Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, change := range changes {
		if change.Arrived.IsZero() {
			change.Arrived = now
		}
		o := change.Object
		at := place{reflect.TypeOf(o), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
		if i, ok := q.places[at]; ok {
			change.Arrived = q.changes[i].Arrived
			q.changes[i] = change
			continue
		}
		q.places[at] = len(q.changes)
		q.changes = append(q.changes, change)
	}
	q.puts++
	q.fill()
}

// CloseDelivered closes a channel once Run has delivered all changes that were
// put.
func (q *Queue) CloseDelivered(done chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delivered = append(q.delivered, done)
	q.fill()
}

func (q *Queue) fill() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// Filled receives a value if there are changes since the last batch.
func (q *Queue) Filled() <-chan struct{} { return q.filled }

// Puts is the number of calls of Put.
func (q *Queue) Puts() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.puts
}

// Collect returns the changes. Call it after receiving from Filled. It waits until
// no more changes come: a short time for few changes, longer for many. It also
// returns the number of calls of Put so far.
func (q *Queue) Collect(ctx context.Context) (changes []Change, puts int) {
	deadline := time.After(longest)
	for {
		select {
		case <-q.filled:
			continue
		case <-time.After(quiet):
		case <-deadline:
		case <-ctx.Done():
		}
		break
	}
	changes, _, puts = q.take()
	return changes, puts
}

func (q *Queue) take() (changes []Change, delivered []chan struct{}, puts int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	changes, delivered = q.changes, q.delivered
	// Not cleared: a map keeps the room that it once had, and the first batch is everything.
	q.changes, q.delivered, q.places = nil, nil, map[place]int{}
	return changes, delivered, q.puts
}

// Run delivers changes until ctx ends. Changes that come during a delivery are
// the next batch. With first, the first batch is delivered even if it is empty.
func (q *Queue) Run(ctx context.Context, deliver func(context.Context, []Change), first bool) {
	for {
		changes, delivered, _ := q.take()
		if first || len(changes) > 0 {
			deliver(ctx, changes)
		}
		first = false
		for _, done := range delivered {
			close(done)
		}
		select {
		case <-ctx.Done():
			return
		case <-q.filled:
		}
	}
}
