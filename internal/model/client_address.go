package model

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// A ClientAddress says where the address of a client comes from.
type ClientAddress struct {
	// ProxyProtocol has connections to the public ports begin with a header of the PROXY
	// protocol. A connection without one is closed.
	ProxyProtocol bool
	// Trusted are the networks of the load balancers whose header is believed.
	Trusted Networks
	// HeaderTimeout is how long Headgate's own listener waits for the header. NGINX's
	// listeners wait for ClientHeaderTimeout.
	HeaderTimeout time.Duration
}

// Networks are ranges of addresses.
type Networks []netip.Prefix

// maxNetworks bounds them: NGINX goes through all of them for each request.
const maxNetworks = 1000

// ParseNetworks reads addresses and ranges in CIDR notation, separated by commas. Beside an
// error about some of them it returns the others.
func ParseNetworks(text string) (Networks, error) {
	var list Networks
	var bad []string
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		network, ok := ParseNetwork(entry)
		if !ok {
			bad = append(bad, entry)
			continue
		}
		list = append(list, network)
	}
	if len(list) > maxNetworks {
		return nil, fmt.Errorf("must be at most %d addresses and networks", maxNetworks)
	}
	if bad != nil {
		return list, fmt.Errorf("%s: must be IP addresses and networks such as 10.0.0.0/8, separated by commas", strings.Join(bad, ", "))
	}
	return list, nil
}

// ParseNetwork reads an address or a range. Bits of a range's address behind its mask are
// ignored, as by NGINX.
func ParseNetwork(text string) (netip.Prefix, bool) {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Masked(), !network.Addr().Is4In6()
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, false
	}
	address = address.Unmap()
	return netip.PrefixFrom(address, address.BitLen()), true
}

func (n Networks) String() string {
	if len(n) == 0 {
		return "none"
	}
	list := make([]string, len(n))
	for i, network := range n {
		list[i] = network.String()
	}
	return strings.Join(list, ",")
}
