// Package porttest assigns ports to tests of all packages, which run at the same
// time.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Free returns a port on which no process listens over TCP or UDP, and which no
// other test gets before this one ends. It is below the ports that the kernel
// uses for connections: the connection of another test could use one of these
// before the caller listens.
func Free(t testing.TB) uint16 {
	t.Helper()
	const lowest, many = 10000, 20000
	for range 100 {
		port := uint16(lowest + rand.IntN(many))
		if reserve(t, port) {
			return port
		}
	}
	t.Fatal("no free port in 100 tries")
	return 0
}

// reserve reserves the port until the test ends, and reports whether that
// succeeded. The mark is a name in the abstract namespace of Unix sockets: only
// one process can have it, it belongs to the same network namespace as the port,
// and the kernel frees it even if the test is killed.
func reserve(t testing.TB, port uint16) bool {
	mark, err := net.Listen("unix", fmt.Sprintf("@headgate-port-%d", port))
	if err != nil {
		return false
	}
	if isTaken(port) {
		mark.Close()
		return false
	}
	t.Cleanup(func() { mark.Close() })
	return true
}

func isTaken(port uint16) bool {
	address := fmt.Sprintf("0.0.0.0:%d", port)
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return true
	}
	listener.Close()
	socket, err := net.ListenPacket("udp4", address)
	if err != nil {
		return true
	}
	socket.Close()
	return false
}
