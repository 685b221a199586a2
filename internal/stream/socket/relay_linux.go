package socket

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Relay passes bytes between two connections, in both directions, until both directions
// have ended. The end of one is passed on as the end of what is written, so that the other
// one goes on.
//
// A loop calls it when there is something to do. What is read goes through the buffer of
// the loop; only what the other connection does not take at once is kept. What does not fit
// into the buffer is spliced, so that it is not copied through this process.
type Relay struct {
	loop *Loop
	// idle is how long the relay may be idle, 0 without limit.
	idle time.Duration
	// Linger is how long it may be idle when the endpoint has ended, 0 without limit.
	Linger time.Duration
	// Done is called once, when both connections are closed, with the bytes of the client and those of
	// the endpoint that were passed on.
	Done func(received, sent int64)

	mu               sync.Mutex
	client, endpoint end
	// active is when bytes were last passed.
	active time.Time
	timer  *time.Timer
	closed bool
}

// An end is one of the two connections, and the direction from it to the other one.
type end struct {
	relay *Relay
	to    *end
	fd    int
	// bytes were passed on from here; total is the sum of the port.
	bytes int64
	total *atomic.Int64

	// readable is set when there may be something to read, and hungUp when the peer has ended
	// what it sends, so that reading must go on until that end.
	readable, hungUp bool
	// ended is set when all was passed on, and the end too.
	ended bool
	// bulk is set when a read has filled the buffer: what follows is spliced.
	bulk bool
	// rest and pipe have what the other end did not take yet.
	rest []byte
	pipe *pipe
}

// Totals are the bytes that all relays of a port have passed on from clients and to them.
type Totals struct{ Received, Sent atomic.Int64 }

// NewRelay takes two sockets. Received is the number of bytes of the client that the
// endpoint has already.
func NewRelay(l *Loop, client, endpoint int, received int64, idle time.Duration, totals *Totals) *Relay {
	r := &Relay{loop: l, idle: idle}
	r.client = end{relay: r, to: &r.endpoint, fd: client, bytes: received, total: &totals.Received}
	r.endpoint = end{relay: r, to: &r.client, fd: endpoint, total: &totals.Sent}
	return r
}

// Start begins to relay.
func (r *Relay) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.active = time.Now()
	if r.idle > 0 {
		r.timer = time.AfterFunc(r.idle, r.checkIdle)
	}
	for _, e := range []*end{&r.client, &r.endpoint} {
		if err := r.loop.Add(e.fd, e, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET); err != nil {
			r.end()
			return
		}
	}
}

// checkIdle ends a relay that was idle for too long. The timer is set again only when it is
// over, since setting it for each message takes longer.
func (r *Relay) checkIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if left := r.idle - time.Since(r.active); left > 0 {
		r.timer.Reset(left)
		return
	}
	r.end()
}

// Cut ends a relay at once.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.end()
	}
}

// end closes both connections.
func (r *Relay) end() {
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	for _, e := range []*end{&r.client, &r.endpoint} {
		r.loop.Remove(e.fd)
		Close(e.fd)
		e.givePipe()
	}
	r.Done(r.client.bytes, r.endpoint.bytes)
}

// Ready passes on what there is, in the directions that events are about.
func (e *end) Ready(events uint32) {
	r := e.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	var err error
	if events&^unix.EPOLLOUT != 0 {
		e.readable = true
		e.hungUp = e.hungUp || events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
		err = e.pass()
	}
	if err == nil && e.to.isBlocked() && events&^unix.EPOLLIN != 0 {
		err = e.to.pass()
	}
	if err != nil || e.ended && e.to.ended {
		r.end()
	} else if (r.endpoint.hungUp || r.endpoint.ended) && r.Linger > 0 && r.timer == nil {
		// From here on only the relay can notice that the client does not take what is left.
		r.idle, r.active = r.Linger, time.Now()
		r.timer = time.AfterFunc(r.idle, r.checkIdle)
	}
}

// Turn is how often an end reads before others have their turn.
const Turn = 8

// pass passes on what there is to read, as far as the other end takes it.
func (e *end) pass() error {
	for range Turn {
		if err := e.flush(); err != nil || e.isBlocked() {
			return err
		}
		if !e.readable || e.ended {
			return nil
		}
		if err := e.read(); err != nil {
			return err
		}
	}
	e.relay.loop.Later(e)
	return nil
}

// isBlocked reports whether the other end did not take all yet.
func (e *end) isBlocked() bool { return len(e.rest) > 0 || e.pipe != nil && e.pipe.n > 0 }

// flush passes on what the other end did not take before.
func (e *end) flush() error {
	if len(e.rest) > 0 {
		n, err := e.send(e.rest)
		if e.rest = e.rest[n:]; err != nil || len(e.rest) > 0 {
			return err
		}
		e.rest = nil
	}
	if e.pipe != nil {
		return e.drainPipe()
	}
	return nil
}

// BufferSize is how much is read at once. A read of as much is followed by splicing.
const BufferSize = 16 << 10

// read reads once, and passes on what was read.
func (e *end) read() error {
	if e.bulk && e.takePipe() {
		return e.fillPipe()
	}
	b := e.relay.loop.buffer[:BufferSize]
	n, err := Receive(e.fd, b)
	if n <= 0 {
		return e.readNothing(err)
	}
	if e.bulk = n == len(b); !e.bulk && !e.hungUp {
		// There was no more. What comes is an event.
		e.readable = false
	}
	sent, err := e.send(b[:n])
	if sent < n {
		e.rest = append([]byte(nil), b[sent:n]...)
	}
	return err
}

// readNothing is for reading that gave no bytes: there are none yet, or none will come.
func (e *end) readNothing(err error) error {
	e.readable, e.bulk = false, false
	e.givePipe()
	if errors.Is(err, syscall.EAGAIN) {
		return nil
	}
	if err == nil {
		e.ended = true
		err = unix.Shutdown(e.to.fd, unix.SHUT_WR)
	}
	return err
}

// send sends what the other end takes.
func (e *end) send(b []byte) (int, error) {
	n, err := Send(e.to.fd, b)
	if errors.Is(err, syscall.EAGAIN) {
		return 0, nil
	}
	e.passed(n)
	return n, err
}

func (e *end) passed(n int) {
	e.bytes += int64(n)
	e.total.Add(int64(n))
	e.relay.active = e.relay.loop.now
}
