package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// A ClientAddress says where the address of a client comes from, and what else is believed
// about it.
type ClientAddress struct {
	// ProxyProtocol has connections to the public ports begin with a header of the PROXY
	// protocol. A connection without one is closed.
	ProxyProtocol bool
	// For is the header with the addresses of the client and of the proxies between it and
	// the last one. Its zero value has none believed.
	For HeaderName
	// Forwarded has X-Forwarded-Proto, -Host and -Port believed.
	Forwarded bool
	// Full has backends get all that X-Forwarded-For had, and who sent it. It needs Forwarded.
	Full bool
	// OriginalFor and OriginalHost are the client's headers that backends get as
	// X-Original-Forwarded-For and X-Original-Forwarded-Host. Zero values are
	// X-Forwarded-For and X-Forwarded-Host.
	OriginalFor, OriginalHost HeaderName
	// Trusted are the networks of the load balancers that are believed.
	Trusted Networks
	// HeaderTimeout is how long Headgate's own listener waits for the header of the PROXY
	// protocol. NGINX's listeners wait for ClientHeaderTimeout.
	HeaderTimeout time.Duration
}

// Joins reports whether the addresses of the public ports come from more than one place, or from
// lines of a header of which NGINX would read the first one alone: Lua joins them.
func (a ClientAddress) Joins() bool {
	return !a.For.IsZero() && (a.ProxyProtocol || a.For != ForwardedFor)
}

// A HeaderName is the name of a header that NGINX can read, in canonical form.
type HeaderName struct{ text string }

// The headers that proxies usually send.
var (
	ForwardedFor  = HeaderName{"X-Forwarded-For"}
	ForwardedHost = HeaderName{"X-Forwarded-Host"}
)

// maxHeaderName is far beyond the length of any header in use.
const maxHeaderName = 64

// NewHeaderName checks a name. Names with underscores are not among those that NGINX reads.
func NewHeaderName(text string) (HeaderName, error) {
	letters := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
	if text == "" || len(text) > maxHeaderName || letters != "" {
		return HeaderName{}, fmt.Errorf("must consist of 1 to %d letters, digits and -", maxHeaderName)
	}
	return HeaderName{textproto.CanonicalMIMEHeaderKey(text)}, nil
}

func (h HeaderName) String() string { return cmp.Or(h.text, "none") }

// IsZero reports whether there is no name.
func (h HeaderName) IsZero() bool { return h.text == "" }

// Or is the name, or another one if there is none.
func (h HeaderName) Or(other HeaderName) HeaderName { return cmp.Or(h, other) }

// Variable is NGINX's variable with the value, without the $.
func (h HeaderName) Variable() string {
	return "http_" + strings.ReplaceAll(strings.ToLower(h.text), "-", "_")
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

// Has reports whether an address is in one of the networks. One of IPv4 that is written as
// one of IPv6 is the same.
func (n Networks) Has(address netip.Addr) bool {
	return slices.ContainsFunc(n, func(network netip.Prefix) bool { return network.Contains(address.Unmap()) })
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

// PackedNetworks are networks as Lua reads them (lua/headgate/networks.lua), and as text.
type PackedNetworks struct {
	Text  string
	Bytes []byte
}

func (p PackedNetworks) String() string { return p.Text }
