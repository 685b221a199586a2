package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Listening is where clients reach Headgate. Its zero value is all addresses of the machine, with a
// socket for each worker.
type Listening struct {
	// Addresses are distinct, and none is of a family that another one is all addresses of. Empty for all.
	Addresses []netip.Addr
	// NoIPv6 leaves IPv6 out.
	NoIPv6 bool
	// OneSocket has all workers take connections from the same socket.
	OneSocket bool
}

// At are the addresses, those for all of a family included, on a machine that has IPv6 or lacks it.
func (l Listening) At(ipv6 bool) []netip.Addr {
	if len(l.Addresses) > 0 {
		return l.Addresses
	}
	return l.All(ipv6)
}

// All are the addresses that stand for all those of a machine that has IPv6 or lacks it.
func (l Listening) All(ipv6 bool) []netip.Addr {
	list := []netip.Addr{netip.IPv4Unspecified()}
	if ipv6 && !l.NoIPv6 {
		list = append(list, netip.IPv6Unspecified())
	}
	return list
}

// HasAll reports whether all addresses of a family are listened on.
func (l Listening) HasAll() bool {
	return len(l.Addresses) == 0 || slices.ContainsFunc(l.Addresses, netip.Addr.IsUnspecified)
}

func (l Listening) String() string {
	var words []string
	for _, a := range l.Addresses {
		words = append(words, a.String())
	}
	if len(words) == 0 {
		words = []string{"all"}
	}
	return fmt.Sprintf("%s noIPv6=%v oneSocket=%v", strings.Join(words, ","), l.NoIPv6, l.OneSocket)
}
