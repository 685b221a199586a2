// Package clientaddress has the settings that say where the address of a client comes
// from: its connection, or the header of the PROXY protocol that a load balancer sends.
package clientaddress

import (
	"errors"
	"net/netip"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var (
	proxyProtocol = feature.Setting[bool]{
		Key: "use-proxy-protocol", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Has load balancers send the address of the client in a header of the PROXY protocol, version 1 or 2, at the start of each connection to the ports for http and https. Connections without one are closed. See [load-balancers.md](load-balancers.md).",
	}
	trusted = feature.Setting[model.Networks]{
		Key: "proxy-real-ip-cidr", Default: model.Networks{netip.MustParsePrefix("0.0.0.0/0")}, Parse: model.ParseNetworks, OnInvalid: feature.UseStrictest, Scope: feature.ScopeProcess,
		Doc: "Load balancers whose header is believed. From other addresses, the header must be there and is ignored. An empty value trusts none.",
	}
	headerTimeout = feature.Setting[time.Duration]{
		Key: "proxy-protocol-header-timeout", Default: 5 * time.Second, Parse: timeout, Scope: feature.ScopeProcess,
		Doc: "With `--enable-ssl-passthrough`, the maximum time until the header has come on the port for https. Otherwise, as in ingress-nginx, `client-header-timeout` applies.",
	}
)

// maxTimeout is far beyond what a load balancer needs.
const maxTimeout = time.Hour

// timeout reads a time as Go writes it, as ingress-nginx does.
func timeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxTimeout {
		return 0, errors.New("must be a time of at most 1h, such as 5s or 500ms")
	}
	return d, nil
}

// Feature is the settings of clients' addresses.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "client_address",
		Doc:      "Where the address of a client comes from.",
		Settings: []feature.AnySetting{proxyProtocol, trusted, headerTimeout},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.ClientAddress = model.ClientAddress{ProxyProtocol: proxyProtocol.Get(v), Trusted: trusted.Get(v), HeaderTimeout: headerTimeout.Get(v)}
		},
	}
}
