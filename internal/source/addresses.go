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
