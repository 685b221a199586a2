// Package porttest gives ports to the tests of all packages, which run at the
// same time.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Free is a TCP port that nobody listens on, and that nobody else is given
// before the test has ended. It is below those that the kernel gives to
// connections: one of these could be taken by the connection of another test
// before who asked for it listens.
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

// reserve tells whether the port is the test's until it ends. What marks it is
// a name in the abstract namespace of Unix sockets: one process alone can have
// it, it is of the same network namespace as the port, and the kernel frees it
// even if the test is killed.
func reserve(t testing.TB, port uint16) bool {
	mark, err := net.Listen("unix", fmt.Sprintf("@headgate-port-%d", port))
	if err != nil {
		return false
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		mark.Close()
		return false
	}
	listener.Close()
	t.Cleanup(func() { mark.Close() })
	return true
}
