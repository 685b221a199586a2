// Package address reads addresses as settings have them: lists of networks that clients are compared
// with, and URLs of services.
package address

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Networks are a list of addresses and networks that requests are compared with, nil for
// no list. Lua finds an address in one of 10,000 by 15 comparisons.
type Networks struct {
	// text is the list as it was written.
	text string
	// four and six are bounds, in ascending order: by turns the first address that is in the
	// list, and the first one behind that is not. The last network may have no end.
	four, six []netip.Addr
	content   model.Content
}

// NetworksForm says what a list must be.
const NetworksForm = "must be IP addresses and networks such as 10.0.0.0/8, separated by commas"

// maxNetworks is what fits into the annotations of an object, as IPv4 networks.
const maxNetworks = 20000

// ParseNetworks reads addresses and networks, separated by commas. Bits of an address behind
// the mask are ignored. An empty text is an empty list.
func ParseNetworks(text string) (*Networks, error) {
	list := &Networks{text: text}
	if text == "" {
		return list, nil
	}
	if strings.Count(text, ",") >= maxNetworks {
		return nil, fmt.Errorf("must be at most %d addresses and networks", maxNetworks)
	}
	var prefixes []netip.Prefix
	var bad []string
	for entry := range strings.SplitSeq(text, ",") {
		// As in ingress-nginx's keys, a comma too many does no harm.
		if entry == "" {
			continue
		}
		prefix, ok := model.ParseNetwork(strings.TrimSpace(entry))
		if !ok {
			bad = append(bad, strings.TrimSpace(entry))
			continue
		}
		prefixes = append(prefixes, prefix)
	}
	if bad == nil && prefixes == nil {
		bad = []string{text}
	}
	if len(bad) == 1 && bad[0] == text {
		return nil, errors.New(NetworksForm)
	}
	if bad != nil {
		return nil, errors.New(finding.ShortenList(quoted(bad)) + ": " + NetworksForm)
	}
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
	for _, p := range prefixes {
		bounds := &list.six
		if p.Addr().Is4() {
			bounds = &list.four
		}
		*bounds = joined(*bounds, p)
	}
	list.content = model.NewContent(list.pack())
	return list, nil
}

func quoted(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = fmt.Sprintf("%.60q", text)
	}
	return list
}

// joined adds a network to bounds. Those before it begin at a lower address, or are wider.
func joined(bounds []netip.Addr, p netip.Prefix) []netip.Addr {
	if n := len(bounds); n%2 == 1 {
		// The last network has no end.
		return bounds
	} else if n > 0 && !bounds[n-1].Less(p.Addr()) {
		if bounds[n-1] != p.Addr() {
			return bounds
		}
		bounds = bounds[:n-1]
	} else {
		bounds = append(bounds, p.Addr())
	}
	if end := behind(p); end.IsValid() {
		bounds = append(bounds, end)
	}
	return bounds
}

// behind is the first address behind a network, invalid if there is none.
func behind(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last.Next()
}

// IsEmpty reports whether the list was written and has nothing in it.
func (n *Networks) IsEmpty() bool { return n != nil && n.text == "" }

// String is the list as it was written.
func (n *Networks) String() string {
	if n == nil {
		return ""
	}
	return n.text
}

// Has reports whether an address is in the list, as lua/headgate/networks.lua finds it.
func (n *Networks) Has(address netip.Addr) bool {
	address = address.Unmap()
	bounds := n.six
	if address.Is4() {
		bounds = n.four
	}
	at, exact := slices.BinarySearchFunc(bounds, address, netip.Addr.Compare)
	if exact {
		at++
	}
	return at%2 == 1
}

// Content is what Lua reads: the number of bounds of IPv4 in four bytes, these bounds in
// four bytes each, those of IPv6 in sixteen, most significant byte first.
func (n *Networks) Content() model.Content { return n.content }

func (n *Networks) pack() []byte {
	bytes := make([]byte, 4, 4+4*len(n.four)+16*len(n.six))
	binary.BigEndian.PutUint32(bytes, uint32(len(n.four)))
	for _, bound := range slices.Concat(n.four, n.six) {
		bytes = append(bytes, bound.AsSlice()...)
	}
	return bytes
}
