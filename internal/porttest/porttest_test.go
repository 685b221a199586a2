package porttest

import (
	"fmt"
	"net"
	"testing"
)

func TestReserve(t *testing.T) {
	port := Free(t)
	if reserve(t, port) {
		t.Errorf("port %d is given twice", port)
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("a reserved port can't be listened on: %v", err)
	}
	defer listener.Close()

	t.Run("another test", func(t *testing.T) {
		if reserve(t, port) {
			t.Errorf("port %d is given while its test runs", port)
		}
	})

	var ended uint16
	t.Run("a test that ends", func(t *testing.T) { ended = Free(t) })
	if !reserve(t, ended) {
		t.Errorf("port %d is still reserved after its test", ended)
	}
}

func TestReserveTakenPort(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	if reserve(t, port) {
		t.Errorf("port %d is given, and someone listens on it", port)
	}
	listener.Close()
	if !reserve(t, port) {
		t.Errorf("port %d can't be reserved after a try in vain", port)
	}
}
