package stream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A relay passes bytes between two connections, in both directions, until both directions
// have ended. The end of one is passed on as the end of what is written, so that the other
// one goes on.
//
// A connection that is idle holds no buffer: one is taken when there is something to read.
// What does not fit into it is spliced, so that it is not copied through this process.
type relay struct {
	client, endpoint *net.TCPConn
	idle             time.Duration
	began            time.Time
	// active is when bytes were last passed, since began.
	active atomic.Int64
	// received are bytes of the client, sent those of the endpoint.
	received, sent flow
}

// A flow counts the bytes of one direction, also in the sum of a port.
type flow struct {
	bytes atomic.Int64
	total *atomic.Int64
}

func (f *flow) add(n int) {
	f.bytes.Add(int64(n))
	f.total.Add(int64(n))
}

func newRelay(client, endpoint *net.TCPConn, idle time.Duration, received, sent *atomic.Int64) *relay {
	r := &relay{client: client, endpoint: endpoint, idle: idle, began: time.Now()}
	r.received.total, r.sent.total = received, sent
	return r
}

// run returns when both directions have ended, or one has failed. Both connections are then
// closed.
func (r *relay) run() {
	defer r.close()
	if r.extend(r.client) != nil || r.extend(r.endpoint) != nil {
		return
	}
	var other sync.WaitGroup
	other.Go(func() { r.direction(r.endpoint, r.client, &r.sent) })
	r.direction(r.client, r.endpoint, &r.received)
	other.Wait()
}

// direction passes bytes one way. If it fails, both connections are closed, which ends the
// other one too.
func (r *relay) direction(from, to *net.TCPConn, counted *flow) {
	d, err := newDirection(r, from, to, counted)
	for err == nil {
		err = d.step()
	}
	if errors.Is(err, io.EOF) {
		err = to.CloseWrite()
	}
	if err != nil {
		r.close()
	}
}

func (r *relay) close() {
	r.client.Close()
	r.endpoint.Close()
}

// extend sets the time at which a connection was idle for too long.
func (r *relay) extend(c *net.TCPConn) error {
	return c.SetDeadline(r.began.Add(time.Duration(r.active.Load()) + r.idle))
}

// noteActive notes that bytes were passed. The deadlines of the connections are extended
// only when they are over, since setting them takes longer.
func (r *relay) noteActive() { r.active.Store(int64(time.Since(r.began))) }

// expired extends the deadline of a connection that was not idle. Otherwise it returns the
// error.
func (r *relay) expired(c *net.TCPConn, err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(r.began)-time.Duration(r.active.Load()) >= r.idle {
		return err
	}
	return r.extend(c)
}

// bufferSize is that of a buffer. A read that fills it is followed by splicing.
const bufferSize = 16 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// A direction passes bytes from one connection to another.
type direction struct {
	relay    *relay
	from, to *net.TCPConn
	source   syscall.RawConn
	target   syscall.RawConn
	counted  *flow

	// buffer and n are what was read last, and err why it failed.
	buffer *[bufferSize]byte
	n      int
	err    error
	// read and splice are the functions of these names, which are made once.
	readFunc, drainFunc, pumpFunc func(uintptr) bool
	pipe                          *pipe
}

func newDirection(r *relay, from, to *net.TCPConn, counted *flow) (*direction, error) {
	d := &direction{relay: r, from: from, to: to, counted: counted}
	var err error
	if d.source, err = from.SyscallConn(); err != nil {
		return nil, err
	}
	if d.target, err = to.SyscallConn(); err != nil {
		return nil, err
	}
	d.readFunc, d.drainFunc, d.pumpFunc = d.read, d.drain, d.pump
	return d, nil
}

// step waits for bytes and passes them on.
func (d *direction) step() error {
	if err := d.source.Read(d.readFunc); err != nil {
		return d.relay.expired(d.from, err)
	}
	if d.buffer == nil {
		return d.err
	}
	full := d.n == bufferSize
	err := d.write(d.buffer[:d.n])
	buffers.Put(d.buffer)
	if d.buffer = nil; err != nil || !full {
		return err
	}
	return d.spliceAll()
}

// read fills a buffer. It reports false if there is nothing to read yet.
func (d *direction) read(fd uintptr) bool {
	b := buffers.Get().(*[bufferSize]byte)
	n, err := ignoringInterrupts(func() (int, error) { return syscall.Read(int(fd), b[:]) })
	if n > 0 {
		d.buffer, d.n = b, n
		return true
	}
	buffers.Put(b)
	if errors.Is(err, syscall.EAGAIN) {
		return false
	}
	if d.err = err; err == nil {
		d.err = io.EOF
	}
	return true
}

func (d *direction) write(b []byte) error {
	for len(b) > 0 {
		n, err := d.to.Write(b)
		if n > 0 {
			d.counted.add(n)
			d.relay.noteActive()
		}
		if b = b[n:]; err != nil {
			if err = d.relay.expired(d.to, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func ignoringInterrupts(do func() (int, error)) (int, error) {
	for {
		n, err := do()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
