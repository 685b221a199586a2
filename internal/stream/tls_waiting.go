package stream

import (
	"container/list"
	"net"
	"sync"
)

// MaxWaiting is how many connections may wait for their ClientHello. For a further one, the
// one that has waited for longest is closed.
const MaxWaiting = 4096

// waiting are the connections whose ClientHello has not come, the oldest first.
type waiting struct {
	mu    sync.Mutex
	all   list.List
	ended bool
}

// enter adds a connection. It reports whether another one was closed for it.
func (w *waiting) enter(c net.Conn) (place *list.Element, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		c.Close()
	}
	if closed = w.all.Len() >= MaxWaiting; closed {
		w.all.Remove(w.all.Front()).(net.Conn).Close()
	}
	return w.all.PushBack(c), closed
}

// leave is for a connection that waits no more, or was closed.
func (w *waiting) leave(place *list.Element) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Remove(place) // Nothing if it was closed.
}

// closeAll closes all connections, and those that come later.
func (w *waiting) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for w.all.Len() > 0 {
		w.all.Remove(w.all.Front()).(net.Conn).Close()
	}
}
