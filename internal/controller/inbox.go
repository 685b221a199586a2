package controller

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/source"
)

// An inbox takes changes from a source without making it wait, and hands them
// over in batches: soon when little happens, in larger batches under a storm.
type inbox struct {
	mu      sync.Mutex
	changes []source.Change
	// batches counts what was put.
	batches int
	filled  chan struct{}
}

const (
	// quiet is how long nothing must have come before a batch is handed over,
	// longest how long it is held back at the most.
	quiet   = time.Millisecond
	longest = 50 * time.Millisecond
)

func newInbox() *inbox { return &inbox{filled: make(chan struct{}, 1)} }

func (b *inbox) put(changes []source.Change) {
	b.mu.Lock()
	b.changes = append(b.changes, changes...)
	b.batches++
	b.mu.Unlock()
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

// take returns what came, and how many batches that makes in all, once filled
// was received and nothing more comes.
func (b *inbox) take(ctx context.Context) (changes []source.Change, batches int) {
	deadline := time.After(longest)
	for {
		select {
		case <-b.filled:
			continue
		case <-time.After(quiet):
		case <-deadline:
		case <-ctx.Done():
		}
		break
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	changes, b.changes = b.changes, nil
	return changes, b.batches
}

// count is the number of batches that were put.
func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.batches
}
