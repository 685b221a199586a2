package socket

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// ListenShared listens on an address with SO_REUSEPORT.
func ListenShared(address netip.AddrPort) (*net.TCPListener, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: Share}
	// Connections are spliced.
	config.SetMultipathTCP(false)
	network := "tcp4"
	if address.Addr().Is6() {
		network = "tcp6" // And not IPv4 too.
	}
	listener, err := config.Listen(context.Background(), network, net.JoinHostPort(address.Addr().String(), strconv.Itoa(int(address.Port()))))
	if err != nil {
		return nil, err
	}
	return listener.(*net.TCPListener), nil
}
