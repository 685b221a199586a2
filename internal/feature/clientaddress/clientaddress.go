// Package clientaddress has the settings that say where the address of a client comes
// from: its connection, the header of the PROXY protocol that a load balancer sends, or
// headers of the request; and whose headers are believed.
package clientaddress

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

var (
	proxyProtocol = feature.Setting[bool]{
		Key: "use-proxy-protocol", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Has load balancers send the address of the client in a header of the PROXY protocol, version 1 or 2, at the start of each connection to the ports for http and https. Connections without one are closed. See [load-balancers.md](load-balancers.md).",
	}
	forwarded = feature.Setting[bool]{
		Key: "use-forwarded-headers", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Believes the headers X-Forwarded-For, -Proto, -Host and -Port of load balancers in proxy-real-ip-cidr. With use-proxy-protocol, who sent the headers is whom the header of the PROXY protocol names. See [load-balancers.md](load-balancers.md).",
	}
	realIP = feature.Setting[bool]{
		Key: "enable-real-ip", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Takes the client's address from the header forwarded-for-header of load balancers in proxy-real-ip-cidr, and believes no other header. With use-proxy-protocol, the address in that protocol's header is used alone.",
	}
	forwardedFor = feature.Setting[model.HeaderName]{
		Key: "forwarded-for-header", Default: model.ForwardedFor, Parse: model.NewHeaderName, OnInvalid: feature.UseStrictest, Scope: feature.ScopeProcess,
		Doc: "The header with the client's address, for use-forwarded-headers and enable-real-ip: the last address in it that is not in proxy-real-ip-cidr. Backends get what the client sent as X-Original-Forwarded-For. With an invalid value, no header has the address.",
	}
	full = feature.Setting[bool]{
		Key: "compute-full-forwarded-for", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "With use-forwarded-headers, backends get the X-Forwarded-For of the load balancer, with its address behind it, instead of the client's address alone.",
	}
	forwardedHost = feature.Setting[model.HeaderName]{
		Key: "forwarded-host-header", Default: model.ForwardedHost, Parse: model.NewHeaderName, Scope: feature.ScopeProcess,
		Doc: "The header of the client that backends get as X-Original-Forwarded-Host. It is not believed: only X-Forwarded-Host is.",
	}
	trusted = feature.Setting[model.Networks]{
		Key: "proxy-real-ip-cidr", Default: model.Networks{netip.MustParsePrefix("0.0.0.0/0")}, Parse: model.ParseNetworks, OnInvalid: feature.UseStrictest, Scope: feature.ScopeProcess,
		Doc: "Load balancers whose headers are believed, those of requests and that of the PROXY protocol. From other addresses, the latter must be there and is ignored. An empty value trusts none.",
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
		Settings: []feature.AnySetting{proxyProtocol, forwarded, realIP, forwardedFor, full, forwardedHost, trusted, headerTimeout},
		Process:  process,
		Causes:   map[feature.Effect]string{feature.TrustedPeers: trusted.Key},
	}
}

func process(v feature.Values, out *feature.ProcessOut) {
	a := model.ClientAddress{
		ProxyProtocol: proxyProtocol.Get(v), Forwarded: forwarded.Get(v), Trusted: trusted.Get(v), HeaderTimeout: headerTimeout.Get(v),
		OriginalFor: forwardedFor.Get(v), OriginalHost: forwardedHost.Get(v),
	}
	a.Full = a.Forwarded && full.Get(v)
	// As in ingress-nginx: the PROXY protocol says more than a header that anyone may send.
	if a.Forwarded || realIP.Get(v) && !a.ProxyProtocol {
		a.For = a.OriginalFor
	}
	out.Process.ClientAddress = a
	if by := feature.AnySetting(forwarded); a.For != (model.HeaderName{}) && slices.ContainsFunc(a.Trusted, func(n netip.Prefix) bool { return n.Bits() == 0 }) {
		if !a.Forwarded {
			by = realIP
		}
		out.Warn(by, finding.Unexpected, "headers of every client are believed, since "+trusted.Key+" has all addresses",
			"clients can choose the address that lists of addresses and limits look at; set "+trusted.Key+" to the addresses of the load balancers")
	}
}
