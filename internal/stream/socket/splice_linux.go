package socket

import (
	"errors"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// pipeSize is how many bytes a pipe takes, where the system allows it.
	pipeSize = 256 << 10
	// freePipes is how many pipes are kept for the next connections that need one.
	freePipes = 64
	// MaxPipes is how many there may be: each takes two files, which are not among those that
	// connections have, and memory of the kernel. Without one, bytes go through the buffer.
	MaxPipes = 128
)

// A pipe is memory of the kernel that bytes are moved into and out of.
type pipe struct {
	r, w int
	n    int // bytes in it
}

// pipes are those of all loops.
type pipes struct {
	free chan *pipe
	open atomic.Int64 // with those that are kept
}

func newPipes() *pipes { return &pipes{free: make(chan *pipe, freePipes)} }

// take returns nil if there may be no further one.
func (p *pipes) take() *pipe {
	select {
	case one := <-p.free:
		return one
	default:
	}
	var fds [2]int
	if p.open.Add(1) > MaxPipes || unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		p.open.Add(-1)
		return nil
	}
	// The system may refuse a larger one; then it is smaller.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return &pipe{r: fds[0], w: fds[1]}
}

// give keeps an empty pipe for the next connection. Others are closed, with what is in them.
func (p *pipes) give(one *pipe) {
	if one.n == 0 {
		select {
		case p.free <- one:
			return
		default:
		}
	}
	p.close(one)
}

func (p *pipes) close(one *pipe) {
	unix.Close(one.r)
	unix.Close(one.w)
	p.open.Add(-1)
}

// closeFree closes those that are kept.
func (p *pipes) closeFree() {
	for {
		select {
		case one := <-p.free:
			p.close(one)
		default:
			return
		}
	}
}

// takePipe reports whether the end has a pipe, which it keeps while there is something to
// read and what it passes on is taken.
func (e *end) takePipe() bool {
	if e.pipe == nil {
		// Without one, bytes go through the buffer.
		e.pipe = e.relay.loop.pipes.take()
	}
	return e.pipe != nil
}

func (e *end) givePipe() {
	if e.pipe != nil {
		e.relay.loop.pipes.give(e.pipe)
		e.pipe = nil
	}
}

// fillPipe moves what there is to read into the empty pipe, and from there to the other end.
func (e *end) fillPipe() error {
	n, err := splice(e.fd, e.pipe.w, pipeSize)
	if n <= 0 {
		return e.readNothing(err)
	}
	e.pipe.n = n
	return e.drainPipe()
}

// drainPipe moves what is in the pipe to the other end, as far as that takes it.
func (e *end) drainPipe() error {
	for e.pipe.n > 0 {
		n, err := splice(e.pipe.r, e.to.fd, e.pipe.n)
		if errors.Is(err, syscall.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		e.pipe.n -= n
		e.passed(n)
	}
	return nil
}

func splice(from, to, most int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if !errors.Is(err, syscall.EINTR) {
			return int(n), err
		}
	}
}
