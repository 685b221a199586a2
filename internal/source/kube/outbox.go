package kube

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source"
)

// An outbox collects changes for the next batch without making anyone wait. Of
// several changes of one object the newest counts.
type outbox struct {
	mu      sync.Mutex
	changes []source.Change
	places  map[place]int
	// settled are closed once what is in the outbox now is delivered.
	settled []chan struct{}
	filled  chan struct{}
}

// A place is what only one object can have.
type place struct {
	kind reflect.Type
	name types.NamespacedName
}

func newOutbox() *outbox {
	return &outbox{places: map[place]int{}, filled: make(chan struct{}, 1)}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (b *outbox) put(change source.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := place{reflect.TypeOf(change.Object), nameOf(change.Object)}
	if i, ok := b.places[at]; ok {
		b.changes[i] = change
		return
	}
	b.places[at] = len(b.changes)
	b.changes = append(b.changes, change)
	b.fill()
}

// settle closes the channel once all that was put is delivered.
func (b *outbox) settle(done chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled = append(b.settled, done)
	b.fill()
}

func (b *outbox) fill() {
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

func (b *outbox) take() ([]source.Change, []chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes, settled := b.changes, b.settled
	b.changes, b.settled, b.places = nil, nil, map[place]int{}
	return changes, settled
}
