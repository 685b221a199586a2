package nginx

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is the size of the pipes that NGINX writes its logs to. It is what an
// unprivileged process may ask for (finding C1).
const pipeBytes = 1 << 20

// logPipe returns a pipe for a log. Where the kernel refuses a large one, lines are
// lost earlier.
func logPipe() (r, w *os.File, err error) {
	r, w, err = os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return enlarged(r, w)
}

// messagePipe returns a pipe for a log in which each read gets what one write wrote. So what a
// client sent, with newlines, can't look like a message of its own. It has room for 256
// messages.
func messagePipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_DIRECT); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return enlarged(os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"))
}

func enlarged(r, w *os.File) (*os.File, *os.File, error) {
	if err := enlarge(r); err != nil {
		r.Close()
		w.Close()
		return nil, nil, err
	}
	return r, w, nil
}

// enlarge makes a pipe larger, if the file is one and the kernel agrees.
func enlarge(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		if size, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && size < pipeBytes {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes)
		}
	})
}

// unblock makes writes to a file fail instead of wait, also in processes that have it
// already. NGINX ignores that on its logs: a line is lost, no request. It must be
// called after a process got the file, since passing it on undoes it.
func unblock(f *os.File) error { return syscall.SetNonblock(int(f.Fd()), true) }
