// Package netguard defines the addresses to which Headgate must not connect on
// behalf of a tenant.
package netguard

import "net/netip"

// metadata6 is the IPv6 address at which instances of AWS get their credentials.
// The IPv4 address, and those of other clouds, are link-local.
var metadata6 = netip.MustParseAddr("fd00:ec2::254")

// IsLocal reports whether an address leads to this machine, its neighbours or its
// credentials. Headgate must not connect to such an address on behalf of a tenant.
func IsLocal(a netip.Addr) bool {
	a = a.Unmap()
	// On Linux, all of 0.0.0.0/8 is this machine.
	this := a.Is4() && a.As4()[0] == 0
	return a.IsLoopback() || a.IsUnspecified() || this || a.IsLinkLocalUnicast() || a.IsMulticast() || a == metadata6
}
