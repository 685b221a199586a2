package stream

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// pipeSize is how many bytes a pipe takes, where the system allows it.
	pipeSize = 256 << 10
	// freePipes is how many pipes are kept for the next connections that need one.
	freePipes = 64
)

// A pipe is memory of the kernel that bytes are moved into and out of.
type pipe struct {
	r, w int
	n    int // bytes in it
}

var pipes = make(chan *pipe, freePipes)

func takePipe() (*pipe, error) {
	select {
	case p := <-pipes:
		return p, nil
	default:
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	// The system may refuse a larger one; then it is smaller.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return &pipe{r: fds[0], w: fds[1]}, nil
}

// give keeps an empty pipe for the next one. Others are closed, with what is in them.
func (p *pipe) give() {
	if p.n == 0 {
		select {
		case pipes <- p:
			return
		default:
		}
	}
	unix.Close(p.r)
	unix.Close(p.w)
}

// takePipe reports whether the end has a pipe, which it keeps while there is something to
// read and what it passes on is taken.
func (e *end) takePipe() bool {
	if e.pipe == nil {
		// Without one, bytes go through the buffer.
		e.pipe, _ = takePipe()
	}
	return e.pipe != nil
}

func (e *end) givePipe() {
	if e.pipe != nil {
		e.pipe.give()
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
