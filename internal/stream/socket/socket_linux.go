package socket

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Detach takes the socket of a connection, which is closed.
func Detach(c interface {
	syscall.Conn
	io.Closer
}) (int, error) {
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var own int
	var failed error
	if err := raw.Control(func(fd uintptr) { own, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return 0, err
	}
	return own, failed
}

// Receive and Send never wait. They are syscalls without the overhead of read and write for
// files.
func Receive(fd int, b []byte) (int, error) {
	return call(unix.SYS_RECVFROM, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), unix.MSG_DONTWAIT)
}

func Send(fd int, b []byte) (int, error) {
	return call(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// Close is close without the overhead of a call that may wait.
func Close(fd int) { _, _ = call(unix.SYS_CLOSE, fd, nil, 0, 0) }

// call makes a syscall that never waits. Go's scheduler takes no part in it: its monitor looks
// at the others again and again.
func call(trap uintptr, fd int, pointer unsafe.Pointer, n, flags int) (int, error) {
	for {
		n, _, err := unix.RawSyscall6(trap, uintptr(fd), uintptr(pointer), uintptr(n), uintptr(flags), 0, 0)
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, err
	}
}
