package stream

import (
	"errors"
	"io"
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

const spliceFlags = unix.SPLICE_F_MOVE | unix.SPLICE_F_NONBLOCK

// spliceAll passes on what there is to read without copying it through this process. It
// holds a pipe for that time only.
func (d *direction) spliceAll() error {
	p, err := takePipe()
	if err != nil {
		return nil // The next step reads into a buffer.
	}
	d.pipe = p
	defer func() {
		d.pipe = nil
		p.give()
	}()
	for {
		// The function never waits.
		if err := d.source.Read(d.drainFunc); err != nil {
			return d.relay.expired(d.from, err)
		}
		if errors.Is(d.err, syscall.EAGAIN) {
			return nil
		}
		if d.err != nil {
			return d.err
		}
		if err := d.pumpAll(); err != nil {
			return err
		}
	}
}

// drain moves bytes from the connection into the pipe.
func (d *direction) drain(fd uintptr) bool {
	n, err := ignoringInterrupts(func() (int, error) {
		n, err := unix.Splice(int(fd), nil, d.pipe.w, nil, pipeSize, spliceFlags)
		return int(n), err
	})
	if d.err = err; n > 0 {
		d.pipe.n += n
	} else if err == nil {
		d.err = io.EOF
	}
	return true
}

// pumpAll moves all bytes of the pipe to the other connection.
func (d *direction) pumpAll() error {
	for d.pipe.n > 0 {
		err := d.target.Write(d.pumpFunc)
		if err == nil {
			err = d.err
		}
		if err != nil {
			if err = d.relay.expired(d.to, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// pump moves bytes from the pipe to the connection. It reports false if that takes none yet.
func (d *direction) pump(fd uintptr) bool {
	for d.pipe.n > 0 {
		n, err := ignoringInterrupts(func() (int, error) {
			n, err := unix.Splice(d.pipe.r, nil, int(fd), nil, d.pipe.n, spliceFlags)
			return int(n), err
		})
		if n > 0 {
			d.pipe.n -= n
			d.counted.add(n)
			d.relay.noteActive()
		}
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		if d.err = err; err != nil {
			return true
		}
	}
	return true
}
