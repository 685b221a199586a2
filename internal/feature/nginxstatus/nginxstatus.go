// Package nginxstatus says which clients get the page /nginx_status.
package nginxstatus

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/address"
)

const doc = " that get /nginx_status at names that no Ingress has, separated by commas. The connection must come from there too, without a believed header such as X-Forwarded-For. Invalid entries get nothing."

var (
	four = feature.Setting[string]{
		Key: "nginx-status-ipv4-whitelist", Default: "127.0.0.1", Parse: of(netip.Addr.Is4, "IPv4"), OnInvalid: feature.UseStrictest, Scope: feature.ScopeProcess,
		Doc: "IPv4 addresses and networks" + doc,
	}
	six = feature.Setting[string]{
		Key: "nginx-status-ipv6-whitelist", Default: "::1", Parse: of(netip.Addr.Is6, "IPv6"), OnInvalid: feature.UseStrictest, Scope: feature.ScopeProcess,
		Doc: "IPv6 addresses and networks" + doc,
	}
)

// of returns a parser of networks of one family. Beside an error it returns those that are valid.
func of(is func(netip.Addr) bool, family string) func(string) (string, error) {
	return func(text string) (string, error) {
		networks, err := model.ParseNetworks(text)
		var kept []string
		for _, network := range networks {
			if !is(network.Addr()) {
				err = errors.New("must be " + family + " addresses and networks, separated by commas")
				continue
			}
			kept = append(kept, shown(network))
		}
		return strings.Join(kept, ","), err
	}
}

// shown leaves the length out that an address without one means.
func shown(network netip.Prefix) string {
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}

// Feature is who gets the page.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "status_page",
		Doc:      "Which clients get the page /nginx_status.",
		Settings: []feature.AnySetting{four, six},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			if four.Get(v) == four.Default && six.Get(v) == six.Default {
				return
			}
			text := strings.Trim(four.Get(v)+","+six.Get(v), ",")
			// Each entry was read before.
			if list, err := address.ParseNetworks(text); err == nil && text != "" {
				out.Process.StatusClients = model.PackedNetworks{Text: text, Bytes: list.Content().Bytes}
				return
			}
			out.Process.StatusClients = model.PackedNetworks{Text: "none", Bytes: make([]byte, countSize)}
		},
	}
}

// countSize is the size of a list without networks, which has nothing but their number.
const countSize = 4
