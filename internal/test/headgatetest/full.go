package headgatetest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"
)

// Full is an address that neither takes nor refuses connections: a listener whose queue is
// full.
type Full struct {
	Address string

	t       testing.TB
	socket  int
	waiting []net.Conn
}

// StartFull returns the address of a Full.
func StartFull(t testing.TB) string {
	t.Helper()
	return NewFull(t).Address
}

// NewFull fills the queue of a listener.
func NewFull(t testing.TB) *Full {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { syscall.Close(socket) })
	must(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(socket, 0))
	name, err := syscall.Getsockname(socket)
	must(t, err)
	f := &Full{t: t, socket: socket, Address: fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)}
	deadline := time.Now().Add(Timeout)
	for time.Now().Before(deadline) {
		// A connection that is taken on a machine that is busy must not count as
		// one that is not.
		connection, err := net.DialTimeout("tcp4", f.Address, 5*time.Second)
		if err != nil {
			return f
		}
		t.Cleanup(func() { connection.Close() })
		f.waiting = append(f.waiting, connection)
	}
	t.Fatal("the queue of a listener does not fill")
	return nil
}

// Serve has it take connections from now on.
func (f *Full) Serve(handler http.Handler) {
	f.t.Helper()
	for _, connection := range f.waiting {
		connection.Close()
	}
	must(f.t, syscall.Listen(f.socket, syscall.SOMAXCONN))
	socket, err := syscall.Dup(f.socket)
	must(f.t, err)
	file := os.NewFile(uintptr(socket), f.Address)
	defer file.Close()
	listener, err := net.FileListener(file)
	must(f.t, err)
	server := &http.Server{Handler: handler}
	go server.Serve(listener)
	f.t.Cleanup(func() { server.Close() })
}
