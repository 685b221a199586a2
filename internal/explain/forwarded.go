package explain

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// lastOther goes back through the addresses in a header, as NGINX's realip module does: as long as
// who added one is trusted.
func lastOther(from netip.Addr, value string, trusted model.Networks) netip.Addr {
	const separators = ", "
	for value != "" && trusted.Has(from) {
		// As in NGINX, the first byte never separates.
		value = value[:1] + strings.TrimRight(value[1:], separators)
		begins := strings.LastIndexAny(value[1:], separators) + 1
		if begins > 0 {
			begins++
		}
		address, ok := parseEntry(value[begins:])
		if !ok {
			break
		}
		from, value = address, value[:max(0, begins-1)]
	}
	return from
}

// parseEntry reads an address, with a port or without one, as NGINX does.
func parseEntry(text string) (netip.Addr, bool) {
	if address, ok := parseAddress(text); ok {
		return address, true
	}
	host, port, ok := strings.Cut(text, ":")
	if inner, bracket := strings.CutPrefix(text, "["); bracket {
		host, port, ok = strings.Cut(inner, "]:")
	}
	// NGINX has no signs in numbers.
	number, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil || number == 0 {
		return netip.Addr{}, false
	}
	return parseAddress(host)
}

func parseAddress(text string) (netip.Addr, bool) {
	if address, ok := parseFour(text); ok {
		return address, true
	}
	address, err := netip.ParseAddr(text)
	return address, err == nil && address.Is6() && address.Zone() == ""
}

// noAddress is what NGINX has for no address of IPv4.
const noAddress = 1<<32 - 1

// parseFour takes more than package netip: "010.0.0.1" is 10.0.0.1, and "10..1." is 10.0.1.0.
func parseFour(text string) (netip.Addr, bool) {
	parts := strings.Split(text, ".")
	if len(parts) != net4 {
		return netip.Addr{}, false
	}
	var bytes [net4]byte
	for i, part := range parts {
		octet := 0
		for _, c := range []byte(part) {
			if c < '0' || c > '9' {
				return netip.Addr{}, false
			}
			if octet = octet*10 + int(c-'0'); octet > 255 {
				return netip.Addr{}, false
			}
		}
		bytes[i] = byte(octet)
	}
	return netip.AddrFrom4(bytes), binary.BigEndian.Uint32(bytes[:]) != noAddress
}

// net4 is the number of bytes of an address of IPv4.
const net4 = 4
