package porttest

import (
	"fmt"
	"io"
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
	for network, listen := range map[string]func(address string) (io.Closer, error){
		"tcp4": func(address string) (io.Closer, error) { return net.Listen("tcp4", address) },
		"udp4": func(address string) (io.Closer, error) { return net.ListenPacket("udp4", address) },
	} {
		// Not one that the kernel gives to connections: it could be taken meanwhile.
		var port uint16
		t.Run(network, func(t *testing.T) { port = Free(t) })
		taken, err := listen(fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		if reserve(t, port) {
			t.Errorf("%s: port %d is given, and someone listens on it", network, port)
		}
		if err := taken.Close(); err != nil {
			t.Fatal(err)
		}
		if !reserve(t, port) {
			t.Errorf("%s: port %d can't be reserved after a try in vain", network, port)
		}
	}
}
