// Package netguard says which addresses must not be connected to because a
// tenant names them.
package netguard

import "net/netip"

// metadata6 is where instances of AWS find their credentials over IPv6. The
// address over IPv4, as that of other clouds, is link-local.
var metadata6 = netip.MustParseAddr("fd00:ec2::254")

// IsLocal reports whether an address leads to this machine, its neighbours or its
// credentials: nothing that a tenant names is to be connected to there.
func IsLocal(a netip.Addr) bool {
	a = a.Unmap()
	// Linux takes all of 0.0.0.0/8 for this machine.
	this := a.Is4() && a.As4()[0] == 0
	return a.IsLoopback() || a.IsUnspecified() || this || a.IsLinkLocalUnicast() || a.IsMulticast() || a == metadata6
}
