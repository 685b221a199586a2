package porttest

import (
	"net"
	"net/netip"
	"testing"
)

// Serve listens at an address until the test ends, and calls a function for each connection,
// which is closed when the function returns. Port 0 is a free one.
func Serve(t testing.TB, address string, serve func(*net.TCPConn)) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}
