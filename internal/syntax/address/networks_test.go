package address_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/syntax/address"
)

// FuzzNetworks reads lists. One that is taken has exactly the addresses of its entries, by
// Has and in the bytes for Lua.
func FuzzNetworks(f *testing.F) {
	for _, text := range []string{
		"", "10.0.0.0/8", "10.0.0.0/8,10.0.0.0/8", "10.0.0.0/9,10.128.0.0/9", "10.1.0.0/16,10.0.0.0/8,11.0.0.0/8", "0.0.0.0/0,::/0", "255.255.255.255",
		"255.255.255.0/24,0.0.0.0", "ffff::/16,2001:db8::7", "10.0.0.0/33", "a", ",", "10.0.0.1 ,", ",10.0.0.1,,", "::ffff:10.0.0.1", "::ffff:0:0/96", "fe80::1%a", "10.0.0.0/8,a",
	} {
		f.Add(text, "10.1.2.3")
	}
	f.Fuzz(func(t *testing.T, text, also string) {
		list, err := address.ParseNetworks(text)
		if err != nil {
			if list != nil {
				t.Errorf("%q is used and has the error %v", text, err)
			}
			return
		}
		var prefixes []netip.Prefix
		asked := []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified(), netip.MustParseAddr("255.255.255.255")}
		if address, err := netip.ParseAddr(also); err == nil && address.Zone() == "" {
			asked = append(asked, address.Unmap())
		}
		for entry := range strings.SplitSeq(text, ",") {
			if entry == "" {
				continue
			}
			entry = strings.TrimSpace(entry)
			prefix, err := netip.ParsePrefix(entry)
			if err != nil {
				address, err := netip.ParseAddr(entry)
				if err != nil {
					t.Fatalf("%q is taken", entry)
				}
				prefix = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
			}
			prefixes = append(prefixes, prefix.Masked())
			asked = append(asked, prefix.Addr(), prefix.Masked().Addr(), prefix.Masked().Addr().Prev(), prefix.Masked().Addr().Next())
		}
		for _, address := range asked {
			if !address.IsValid() {
				continue
			}
			want := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
			if got := list.Has(address); got != want {
				t.Errorf("%q has %s: %v, want %v", text, address, got, want)
			}
			if got := text != "" && inBytes(list.Content().Bytes, address); got != want {
				t.Errorf("the bytes of %q have %s: %v, want %v", text, address, got, want)
			}
		}
	})
}

// inBytes counts the bounds that are not above an address.
func inBytes(bytes []byte, address netip.Addr) bool {
	four := 4 * int(binary.BigEndian.Uint32(bytes))
	bounds, width := bytes[4:4+four], 4
	if address.Is6() {
		bounds, width = bytes[4+four:], 16
	}
	in := false
	for bound := range slices.Chunk(bounds, width) {
		if string(bound) <= string(address.AsSlice()) {
			in = !in
		}
	}
	return in
}

func TestNetworksAreBounded(t *testing.T) {
	t.Parallel()
	if _, err := address.ParseNetworks(strings.Repeat("10.0.0.1,", 20000) + "10.0.0.1"); err == nil {
		t.Error("a list of 20,001 entries is taken")
	}
	list, err := address.ParseNetworks(strings.Repeat("10.0.0.1,", 19999) + "10.0.0.1")
	if err != nil || len(list.Content().Bytes) != 12 {
		t.Errorf("20,000 equal entries: %v", err)
	}
}
