package source

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Addresses are those of a DNS name, as an object. Its name is the DNS name as it
// was requested, and its namespace is empty.
type Addresses struct {
	metav1.ObjectMeta
	// Addresses are sorted and without duplicates.
	Addresses []netip.Addr
	// Refused are addresses of the name to which Headgate must not connect.
	Refused []netip.Addr
	// Problem is why there is no address, or why the addresses may be outdated;
	// empty if there is no problem. It stays the same while the problem lasts.
	Problem string
}

// NewAddresses makes the object of a name.
func NewAddresses(name string) *Addresses {
	return &Addresses{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
