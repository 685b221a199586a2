package source

import (
	"context"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Queue takes changes without making anyone wait, and hands them over in
// batches. Of several changes of one object the newest counts.
type Queue struct {
	mu      sync.Mutex
	changes []Change
	places  map[place]int
	// puts counts calls of Put.
	puts int
	// delivered are closed once what is in the queue now is delivered.
	delivered []chan struct{}
	filled    chan struct{}
}

// A place is what only one object can have.
type place struct {
	kind reflect.Type
	name types.NamespacedName
}

const (
	// quiet is how long nothing must have come before Collect returns a batch,
	// longest how long it is held back at the most.
	quiet   = time.Millisecond
	longest = 50 * time.Millisecond
)

// NewQueue makes a Queue with nothing in it.
func NewQueue() *Queue {
	return &Queue{places: map[place]int{}, filled: make(chan struct{}, 1)}
}

// Put adds changes. It does not wait.
func (q *Queue) Put(changes ...Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, change := range changes {
		o := change.Object
		at := place{reflect.TypeOf(o), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
		if i, ok := q.places[at]; ok {
			q.changes[i] = change
			continue
		}
		q.places[at] = len(q.changes)
		q.changes = append(q.changes, change)
	}
	q.puts++
	q.fill()
}

// CloseDelivered closes a channel once all that was put is delivered by Run.
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

// Filled receives when something was put since the last batch.
func (q *Queue) Filled() <-chan struct{} { return q.filled }

// Puts is the number of calls of Put.
func (q *Queue) Puts() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.puts
}

// Collect returns what was put, once Filled was received and nothing more
// comes: soon when little happens, in larger batches under a storm. With it
// comes how many calls of Put that makes in all.
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
	q.changes, q.delivered = nil, nil
	clear(q.places)
	return changes, delivered, q.puts
}

// Run delivers what is put until ctx ends. What comes while a batch is being
// delivered makes the next one. With first, the first batch is delivered even
// if it is empty.
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
