package socket

import (
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Share has several sockets of a user listen on one port.
func Share(_, _ string, c syscall.RawConn) error {
	var err error
	if failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); failed != nil {
		return failed
	}
	return err
}

// randomNumber is where a program reads a random number: SKF_AD_OFF + SKF_AD_RANDOM.
const randomNumber = 1<<32 - 0x1000 + 56

// Steer says who gets the connections of a port that several sockets listen on: this
// listener, or NGINX's workers with a socket each. It needs no privilege.
//
// The kernel keeps the sockets in the order in which they began to listen. When one is
// closed, the last one takes its place. So the first one keeps the number 0, and this
// listener must be that.
//
// A number without a socket leaves it to the kernel, which may choose any of them. So while
// NGINX does not run, this listener gets the connections, and holds them.
func Steer(l *net.TCPListener, here bool, workers int) error {
	filter := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	if !here {
		// 1 + a random number modulo the workers.
		filter = []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: randomNumber},
			{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(workers)},
			{Code: unix.BPF_ALU | unix.BPF_ADD | unix.BPF_K, K: 1},
			{Code: unix.BPF_RET | unix.BPF_A},
		}
	}
	connection, err := l.SyscallConn()
	if err != nil {
		return err
	}
	failed := connection.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("divide the connections of a port (SO_ATTACH_REUSEPORT_CBPF): %w", err)
	}
	return nil
}
