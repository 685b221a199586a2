package program

import (
	"encoding/hex"
	"encoding/json"
	"net/netip"
)

// packedRule is a Rule as Lua reads it.
type packedRule struct {
	Allow bool `json:"allow,omitempty"`
	// All is set for all clients, and Unix for those of unix sockets. Else First and Last
	// are the first and the last address of the network, in hexadecimal.
	All   bool   `json:"all,omitempty"`
	Unix  bool   `json:"unix,omitempty"`
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
}

// MarshalJSON writes the bounds of the network: Lua reads no addresses as text. A network
// that is none matches no client.
func (r Rule) MarshalJSON() ([]byte, error) {
	packed := packedRule{Allow: r.Allow, All: r.Network == "all", Unix: r.Network == "unix:"}
	if network, ok := network(r.Network); ok {
		first := network.Masked().Addr().AsSlice()
		last := network.Masked().Addr().AsSlice()
		for bit := network.Bits(); bit < len(last)*8; bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		packed.First, packed.Last = hex.EncodeToString(first), hex.EncodeToString(last)
	}
	return json.Marshal(packed)
}

// network reads an address or a network. As in NGINX, bits behind the mask do not count.
func network(text string) (netip.Prefix, bool) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return netip.PrefixFrom(address, address.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix, err == nil
}
