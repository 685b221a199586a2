// Package listen has the addresses that clients reach Headgate at.
package listen

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// maxAddresses bounds the sockets: there are some for each worker and address.
const maxAddresses = 64

var (
	addresses = feature.Setting[entries]{
		Key: "bind-address", Parse: parse, Scope: feature.ScopeProcess,
		Doc: "The IP addresses of this machine, separated by commas, at which the ports for http and https and those of TCP and UDP services are open. " +
			"Without it, all are. Invalid entries are left out, and so are addresses that the machine does not have, as long as it lacks them.",
	}
	noIPv6 = feature.Setting[bool]{
		Key: "disable-ipv6", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Listens on no IPv6 address.",
	}
	reusePort = feature.Setting[bool]{
		Key: "reuse-port", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Gives each worker sockets of its own (SO_REUSEPORT), among which the kernel divides connections. If it is false, all workers take connections from the same socket. " +
			"HTTP/3 needs it in any case, and so does the port for https with `--enable-ssl-passthrough`.",
	}
)

// entries are addresses, with the error about others.
type entries struct {
	list []netip.Addr
	bad  error
}

func (e entries) String() string { return shown(e.list) }

func shown(list []netip.Addr) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.String()
	}
	return strings.Join(words, ",")
}

// parse returns an error only if there is no valid entry.
func parse(text string) (e entries, err error) {
	var bad []string
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		switch a, err := netip.ParseAddr(entry); {
		case err != nil || a.Zone() != "" || a.IsMulticast():
			bad = append(bad, entry)
		case len(e.list) == maxAddresses:
			e.bad = fmt.Errorf("more than %d addresses: must be at most that many", maxAddresses)
		default:
			e.list = append(e.list, a.Unmap())
		}
	}
	const want = "must be IP addresses of this machine, separated by commas"
	if len(e.list) == 0 && len(bad) > 0 {
		return entries{}, errors.New(want)
	}
	if len(bad) > 0 {
		e.bad = fmt.Errorf("invalid entries %q: %s", finding.ShortenList(bad), want)
	}
	e.list = distinct(e.list)
	return e, nil
}

// distinct leaves out what another entry covers: NGINX opens each address once.
func distinct(list []netip.Addr) []netip.Addr {
	var kept []netip.Addr
	for _, a := range list {
		all := netip.IPv4Unspecified()
		if a.Is6() {
			all = netip.IPv6Unspecified()
		}
		if !slices.Contains(kept, a) && (a == all || !slices.Contains(list, all)) {
			kept = append(kept, a)
		}
	}
	return kept
}

// Feature is where clients reach Headgate.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "listen",
		Doc:      "The addresses that clients reach Headgate at.",
		Settings: []feature.AnySetting{addresses, noIPv6, reusePort},
		Process:  apply,
	}
}

func apply(v feature.Values, out *feature.ProcessOut) {
	wanted := addresses.Get(v)
	if wanted.bad != nil {
		out.Warn(addresses, finding.InvalidValue, wanted.bad.Error(), "the other entries are used")
	}
	list := wanted.list
	if noIPv6.Get(v) {
		if list = withoutIPv6(list); len(list) == 0 && len(wanted.list) > 0 {
			out.Warn(addresses, finding.NoEffect, "all addresses are IPv6, and the key "+noIPv6.Key+" is true: must be IPv4 addresses", "listening on all IPv4 addresses")
		}
	}
	out.Process.Listening = model.Listening{Addresses: available(v, out, list), NoIPv6: noIPv6.Get(v), OneSocket: !reusePort.Get(v)}
}

func withoutIPv6(list []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(list), netip.Addr.Is6)
}

// available are the addresses that can be listened on. If there is none, those stay that were listened
// on before. If there were none either, it is the loopback address: an administrator who names addresses
// does not want others to be open.
func available(v feature.Values, out *feature.ProcessOut, wanted []netip.Addr) []netip.Addr {
	asked := wanted
	if len(asked) == 0 {
		asked = []netip.Addr{netip.IPv4Unspecified()}
	}
	var good []netip.Addr
	var wrong []error
	for _, a := range asked {
		if err := v.Bind(a); err != nil {
			wrong = append(wrong, err)
			continue
		}
		good = append(good, a)
	}
	if len(wrong) == 0 {
		return wanted
	}
	effect := "listening on the other addresses"
	if len(good) == 0 {
		good, effect = instead(v)
	}
	for _, err := range wrong {
		out.Warn(addresses, finding.UnavailablePort, err.Error(), effect+" until it is there")
	}
	return good
}

func instead(v feature.Values) (list []netip.Addr, effect string) {
	last := slices.DeleteFunc(slices.Clone(v.LastAddresses()), func(a netip.Addr) bool { return v.Bind(a) != nil })
	if noIPv6.Get(v) {
		last = withoutIPv6(last)
	}
	if len(last) > 0 {
		return last, "still listening on " + shown(last)
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return []netip.Addr{loopback}, "listening on " + loopback.String() + " alone"
}
