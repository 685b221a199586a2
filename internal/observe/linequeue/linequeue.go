// Package linequeue has a writer that never waits for the one behind it: a log that
// is not read must not stop those who write to it.
package linequeue

import (
	"io"
	"sync"
	"time"
)

// MaxBytes is the number of bytes of a log that wait to be written. Further lines are
// dropped (finding C1).
const MaxBytes = 1 << 20

// A Writer hands what is written to it to another writer, from a goroutine of its
// own. Each call of Write is one line, and lines are dropped as a whole.
type Writer struct {
	to io.Writer

	mu      sync.Mutex
	waiting [][]byte
	bytes   int
	dropped int
	// busy is set while a line is written.
	busy bool
	// idle is closed when nothing waits any more; nil while no caller waits.
	idle chan struct{}
	wake chan struct{}
}

// New returns a Writer to another one. Its goroutine never ends.
func New(to io.Writer) *Writer {
	w := &Writer{to: to, wake: make(chan struct{}, 1)}
	go w.run()
	return w
}

// Write never blocks and never fails.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes+len(line) > MaxBytes {
		w.dropped++
		return len(line), nil
	}
	w.waiting = append(w.waiting, append([]byte(nil), line...))
	w.bytes += len(line)
	select {
	case w.wake <- struct{}{}:
	default: // It will look anyway.
	}
	return len(line), nil
}

// Dropped is the number of lines that were dropped.
func (w *Writer) Dropped() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Flush waits until all lines are written, but not longer than a time.
func (w *Writer) Flush(limit time.Duration) {
	w.mu.Lock()
	if len(w.waiting) == 0 && !w.busy {
		w.mu.Unlock()
		return
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(limit):
	}
}

func (w *Writer) run() {
	for range w.wake {
		for line := w.next(); line != nil; line = w.next() {
			// There is nowhere to report a log that can't be written.
			_, _ = w.to.Write(line)
		}
	}
}

// next returns the next line, nil if there is none.
func (w *Writer) next() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = len(w.waiting) > 0
	if !w.busy {
		w.waiting = nil
		if w.idle != nil {
			close(w.idle)
			w.idle = nil
		}
		return nil
	}
	line := w.waiting[0]
	w.waiting[0] = nil
	w.waiting = w.waiting[1:]
	w.bytes -= len(line)
	return line
}
