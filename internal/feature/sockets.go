package feature

import "net/netip"

// Sockets are what is known of the addresses of this machine. Where there is none, as for lint, every
// address is one of its own.
type Sockets struct {
	// Bind returns why the ports for http and https can't be opened at an address, nil if they can.
	Bind func(netip.Addr) error
	// Last are the addresses of model.Listening that NGINX took last.
	Last func() []netip.Addr
}

// Bind returns why the ports for http and https can't be opened at an address, nil if they can.
func (v Values) Bind(a netip.Addr) error {
	if bind := v.config.schema.Sockets.Bind; bind != nil {
		return bind(a)
	}
	return nil
}

// LastAddresses are the addresses of model.Listening that NGINX took last.
func (v Values) LastAddresses() []netip.Addr {
	if last := v.config.schema.Sockets.Last; last != nil {
		return last()
	}
	return nil
}
