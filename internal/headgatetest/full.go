package headgatetest

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// StartFull returns an address that neither takes nor refuses connections: a
// listener whose queue is full.
func StartFull(t testing.TB) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { syscall.Close(socket) })
	must(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(socket, 0))
	name, err := syscall.Getsockname(socket)
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	deadline := time.Now().Add(Timeout)
	for time.Now().Before(deadline) {
		// A connection that is taken on a machine that is busy must not count as
		// one that is not.
		connection, err := net.DialTimeout("tcp4", address, 5*time.Second)
		if err != nil {
			return address
		}
		t.Cleanup(func() { connection.Close() })
	}
	t.Fatal("the queue of a listener does not fill")
	return ""
}
