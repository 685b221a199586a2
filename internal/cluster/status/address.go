package status

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// An address is an IP address or a DNS name; one of the two is empty.
type address struct{ hostname, ip string }

// Addresses are sorted, names last, and without duplicates.
type Addresses []address

// newAddresses sorts a list. The result is not nil.
func newAddresses(list []address) Addresses {
	list = append(Addresses{}, list...)
	slices.SortFunc(list, func(a, b address) int {
		return cmp.Or(cmp.Compare(a.hostname, b.hostname), cmp.Compare(a.ip, b.ip))
	})
	return slices.Compact(list)
}

// shownBy returns the addresses in the status of an Ingress, without ports.
func shownBy(ing *networkingv1.Ingress) Addresses {
	entries := ing.Status.LoadBalancer.Ingress
	list := make([]address, len(entries))
	for i, e := range entries {
		list[i] = address{e.Hostname, e.IP}
	}
	return newAddresses(list)
}

func (a Addresses) entries() []networkingv1.IngressLoadBalancerIngress {
	var entries []networkingv1.IngressLoadBalancerIngress
	for _, one := range a {
		entries = append(entries, networkingv1.IngressLoadBalancerIngress{IP: one.ip, Hostname: one.hostname})
	}
	return entries
}

// String lists the addresses, separated by commas.
func (a Addresses) String() string {
	words := make([]string, len(a))
	for i, one := range a {
		words[i] = cmp.Or(one.ip, one.hostname)
	}
	return strings.Join(words, ",")
}

// parseAddress parses an IP address or a DNS name.
func parseAddress(text string) (address, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		return address{ip: ip.String()}, nil
	}
	if len(validation.IsDNS1123Subdomain(text)) > 0 {
		return address{}, fmt.Errorf("invalid address %q: must be an IP address or a DNS name in lower case", text)
	}
	return address{hostname: text}, nil
}

// ParseAddresses parses a list of IP addresses and DNS names, separated by commas.
func ParseAddresses(text string) (Addresses, error) {
	var list []address
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		one, err := parseAddress(part)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return newAddresses(list), nil
}
