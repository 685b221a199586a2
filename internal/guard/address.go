// Package guard defines what Headgate must not use on behalf of a tenant:
// addresses to connect to, and public keys.
package guard

import "net/netip"

// isMetadata reports whether machines of a cloud get their configuration, and often
// credentials, at an address. Most clouds do so at a link-local one.
func isMetadata(a netip.Addr) bool {
	switch a.String() {
	case "fd00:ec2::254", // AWS
		"fd20:ce::254",    // Google
		"168.63.129.16",   // Azure
		"100.100.100.200", // Alibaba
		"192.0.0.192":     // Oracle
		return true
	}
	return false
}

// IsLocal reports whether an address leads to this machine, its neighbours or its
// credentials. Headgate must not connect to such an address on behalf of a tenant.
func IsLocal(a netip.Addr) bool {
	a = a.Unmap()
	// On Linux, all of 0.0.0.0/8 is this machine.
	this := a.Is4() && a.As4()[0] == 0
	return a.IsLoopback() || a.IsUnspecified() || this || a.IsLinkLocalUnicast() || a.IsMulticast() || isMetadata(a)
}
