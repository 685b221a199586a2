// Package http3 has the settings of HTTP/3.
package http3

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

const maxPort = 1<<16 - 1

var (
	use = feature.Setting[bool]{
		Key: "use-http3", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Enables HTTP/3 on the UDP port with the number of the port for https, and announces it in the header Alt-Svc of responses over https. See [http3.md](http3.md).",
	}
	altSvcPort = feature.Setting[int]{
		Key: "http3-alt-svc-port", Default: 443, Parse: feature.Int(1, maxPort), Scope: feature.ScopeProcess,
		Doc: "The UDP port that the header Alt-Svc names: the one at which clients reach HTTP/3.",
	}
)

// Feature is HTTP/3. It comes after what says where the addresses of clients come from.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "http3",
		Doc:      "HTTP/3, the version of HTTP over QUIC.",
		Settings: []feature.AnySetting{use, altSvcPort},
		Process:  apply,
	}
}

func apply(v feature.Values, out *feature.ProcessOut) {
	if !use.Get(v) {
		return
	}
	switch {
	case !v.Has(feature.HTTP3):
		out.Reject(use, finding.MissingCapability, "this NGINX does not support HTTP/3, which needs NGINX 1.25 or later with its module http_v3")
	case out.Process.ClientAddress.ProxyProtocol:
		// An address that a guard allows may be that of the load balancer.
		out.Reject(use, finding.Conflict, "QUIC has no header of the PROXY protocol, so use-proxy-protocol must be false")
	case out.Process.TLS.Versions == model.TLS12:
		out.Reject(use, finding.Conflict, "HTTP/3 needs TLSv1.3, which ssl-protocols lacks")
	default:
		out.Process.HTTP3, out.Process.AltSvcPort = true, altSvcPort.Get(v)
	}
}
