package socket

import (
	"errors"
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxSpare is how many sockets of a family all loops keep.
const maxSpare = 256

// DialUDP makes a socket that takes datagrams only from an endpoint. Most sessions last for one
// answer, so that opening and closing their sockets would take a third of the time: sockets
// of sessions that have ended are used again.
func (l *Loop) DialUDP(endpoint netip.AddrPort, s Handler) (int, error) {
	raw := rawOf(endpoint)
	fd, err := l.socketUDP(raw.Family, s)
	if err != nil {
		return 0, err
	}
	if _, err := call(unix.SYS_CONNECT, fd, unsafe.Pointer(raw), int(sizeOf(raw)), 0); err != nil {
		l.Remove(fd)
		Close(fd)
		return 0, err
	}
	return fd, nil
}

func (l *Loop) socketUDP(family uint16, s Handler) (int, error) {
	for {
		fd, ok := l.takeSpare(family, s)
		if !ok {
			break
		}
		if isEmpty(fd) {
			return fd, nil
		}
		l.Remove(fd)
		Close(fd)
	}
	fd, err := unix.Socket(int(family), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := l.Add(fd, s, unix.EPOLLIN|unix.EPOLLET); err != nil {
		Close(fd)
		return 0, err
	}
	return fd, nil
}

// takeSpare takes a socket that has no port. It is in the epoll.
func (l *Loop) takeSpare(family uint16, s Handler) (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.spare[family]
	if len(all) == 0 {
		return 0, false
	}
	fd := all[len(all)-1]
	l.spare[family] = all[:len(all)-1]
	l.sockets[int32(fd)] = s
	return fd, true
}

// isEmpty removes what came late for the session before: a few datagrams, or an error.
func isEmpty(fd int) bool {
	for range 4 {
		if _, err := Receive(fd, make([]byte, 1)); errors.Is(err, unix.EAGAIN) {
			return true
		}
	}
	return false
}

// GiveUDP keeps the socket of an endpoint without its port, or closes it. Nothing comes to it any more.
func (l *Loop) GiveUDP(fd int, endpoint netip.AddrPort) {
	family := rawOf(endpoint).Family
	var none unix.RawSockaddr // AF_UNSPEC
	_, err := call(unix.SYS_CONNECT, fd, unsafe.Pointer(&none), int(unsafe.Sizeof(none)), 0)
	l.mu.Lock()
	delete(l.sockets, int32(fd))
	kept := err == nil && len(l.spare[family]) < maxSpare/runtime.GOMAXPROCS(0)
	if kept {
		l.spare[family] = append(l.spare[family], fd)
	}
	l.mu.Unlock()
	if !kept {
		Close(fd)
	}
}

// closeSpare closes all that are kept.
func (l *Loop) closeSpare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, all := range l.spare {
		for _, fd := range all {
			Close(fd)
		}
	}
	l.spare = nil
}
