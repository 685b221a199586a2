package proxying_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/gatetest"
)

// full is an address that neither takes nor refuses connections: a listener
// whose queue is full.
func full(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	deadline := time.Now().Add(gatetest.Patience)
	for time.Now().Before(deadline) {
		connection, err := net.DialTimeout("tcp4", address, 200*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { connection.Close() })
	}
	t.Fatal("the queue of a listener does not fill")
	return ""
}
