package socket

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// controlSize is room for the control messages of a datagram.
const controlSize = 128

// PacketInfo reads and writes the control messages with the address of this machine that a
// client sent to, so that the answer comes from the same one.
type PacketInfo struct{ is6 bool }

// NewPacketInfo has the kernel say where datagrams were sent to.
func NewPacketInfo(conn *net.UDPConn) (p PacketInfo, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return p, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var domain int
		if domain, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); failed != nil {
			return
		}
		if p.is6 = domain == unix.AF_INET6; p.is6 {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			return
		}
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	})
	if err == nil {
		err = failed
	}
	return p, err
}

// Destination is the address that a datagram was sent to, invalid if it is not known.
func (p PacketInfo) Destination(control []byte) netip.Addr {
	for len(control) > 0 {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return netip.Addr{}
		}
		switch {
		case header.Level == unix.IPPROTO_IPV6 && header.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrFrom16([16]byte(data)).Unmap()
		case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4([4]byte(data[8:]))
		}
		control = rest
	}
	return netip.Addr{}
}

// Reply is the control message of an answer that comes from an address.
func (p PacketInfo) Reply(from netip.Addr) []byte {
	switch {
	case !from.IsValid() || from.IsMulticast():
		return nil
	case p.is6:
		return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: from.As16()})
	}
	return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: from.As4()})
}
