package source

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Addresses are what a DNS name stands for, as an object among the others. Its
// name is the DNS name as it was asked for, and its namespace is empty.
type Addresses struct {
	metav1.ObjectMeta
	// Addresses are sorted and without duplicates.
	Addresses []netip.Addr
	// Refused are those that the name stands for as well, and that must not be
	// connected to.
	Refused []netip.Addr
	// Problem says why there is no address, or why those that there are may be
	// old; empty if all is well. It stays the same while the problem lasts.
	Problem string
}

// NewAddresses makes the object of a name.
func NewAddresses(name string) *Addresses {
	return &Addresses{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// metadata6 is where instances of AWS find their credentials over IPv6. The
// address over IPv4, as that of other clouds, is link-local.
var metadata6 = netip.MustParseAddr("fd00:ec2::254")

// IsLocal tells whether an address leads to this machine, its neighbours or its
// credentials: nothing that a tenant names is to be connected to there.
func IsLocal(a netip.Addr) bool {
	a = a.Unmap()
	// Linux takes all of 0.0.0.0/8 for this machine.
	this := a.Is4() && a.As4()[0] == 0
	return a.IsLoopback() || a.IsUnspecified() || this || a.IsLinkLocalUnicast() || a.IsMulticast() || a == metadata6
}
