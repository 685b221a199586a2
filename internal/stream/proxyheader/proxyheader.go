// Package proxyheader reads and writes the header of the PROXY protocol at the beginning of a connection.
package proxyheader

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	proxyproto "github.com/pires/go-proxyproto"
)

// Timeout is how long a client may take to send the header of the PROXY protocol.
const Timeout = 30 * time.Second

// headerBuffer holds more than most headers.
const headerBuffer = 512

// ErrNothingSent is a connection without a byte, such as a load balancer's health check.
var ErrNothingSent = errors.New("the client has sent nothing")

// Read reads the header of the PROXY protocol, of version 1 or 2, which a client must
// send first. It returns the addresses in it, invalid ones if it has none, and what the
// client has sent after it.
func Read(c net.Conn, limit time.Duration) (from, to netip.AddrPort, rest []byte, err error) {
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return from, to, nil, err
	}
	reader := bufio.NewReaderSize(c, headerBuffer)
	if _, err := reader.Peek(1); err != nil {
		return from, to, nil, ErrNothingSent
	}
	header, err := proxyproto.Read(reader)
	if err != nil {
		return from, to, nil, fmt.Errorf("read the PROXY protocol: %w", err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return from, to, nil, err
	}
	if !header.Command.IsLocal() {
		if source, destination, ok := header.TCPAddrs(); ok {
			from, to = AddressOf(source), AddressOf(destination)
		}
	}
	if n := reader.Buffered(); n > 0 {
		rest = make([]byte, n)
		_, err = reader.Read(rest)
	}
	return from, to, rest, err
}

// Format is that of version 1 for a connection.
func Format(from, to netip.AddrPort) []byte {
	if !from.IsValid() || !to.IsValid() {
		return []byte("PROXY UNKNOWN\r\n")
	}
	if from.Addr().Is4() != to.Addr().Is4() {
		// Both addresses must be of one family.
		from, to = in6(from), in6(to)
	}
	family := "TCP4"
	if from.Addr().Is6() {
		family = "TCP6"
	}
	return fmt.Appendf(nil, "PROXY %s %s %s %d %d\r\n", family, from.Addr(), to.Addr(), from.Port(), to.Port())
}

func in6(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// AddressOf is the address of an end of a connection.
func AddressOf(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp != nil {
		at := tcp.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	}
	return netip.AddrPort{}
}
