package nginxconf

import (
	"net/netip"

	"github.com/headgate/headgate/internal/model"
)

// Addresses are the local addresses that the public ports listen on.
func (d document) Addresses() []string { return texts(d.Process.Listening.At(d.IPv6)) }

// AllAddresses stand for all those of the families that are listened on.
func (d document) AllAddresses() []string { return texts(d.Process.Listening.All(d.IPv6)) }

// SharesHTTP reports whether each worker has a socket of its own for http, and SharesHTTPS the same for
// https: connections there are divided between sockets where the controller listens on the port too.
func (d document) SharesHTTP() bool { return !d.Process.Listening.OneSocket }

// SharesHTTPS is explained there.
func (d document) SharesHTTPS() bool { return d.SharesHTTP() || d.Passthrough }

func texts(addresses []netip.Addr) []string {
	list := make([]string, len(addresses))
	for i, a := range addresses {
		if list[i] = a.String(); a.Is6() {
			list[i] = "[" + list[i] + "]"
		}
	}
	return list
}

// TCPAddresses are those that NGINX listens on. The controller listens on those of shared too, see
// Environment.Passthrough.
func TCPAddresses(e Environment, l model.Listening) (own, shared []netip.AddrPort) {
	for _, a := range l.At(e.IPv6) {
		own = append(own, netip.AddrPortFrom(a, uint16(e.HTTPPort)))
		if https := netip.AddrPortFrom(a, uint16(e.HTTPSPort)); e.Passthrough {
			shared = append(shared, https)
		} else {
			own = append(own, https)
		}
	}
	if e.DefaultServerPort != 0 {
		for _, a := range l.All(e.IPv6) {
			own = append(own, netip.AddrPortFrom(a, uint16(e.DefaultServerPort)))
		}
	}
	if e.StatusPort != 0 {
		own = append(own, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(e.StatusPort)))
	}
	return own, shared
}
