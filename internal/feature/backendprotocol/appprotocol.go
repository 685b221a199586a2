package backendprotocol

import (
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

// appProtocols are the application protocols of ports that are not asked by HTTP. The names
// with kubernetes.io are those of Kubernetes, of which one is of an older version. WebSockets
// need no other protocol than HTTP. What http2 stands for depends on who reads it, with or
// without TLS: such a port is asked by HTTP, as one with a name that others define.
var appProtocols = map[string]protocol{
	"https":              https,
	"kubernetes.io/wss":  https,
	"kubernetes.io/h2c":  grpc,
	"kubernetes.io/grpc": grpc,
	"grpc":               grpc,
}

var useAppProtocol = feature.Setting[bool]{
	Key: "use-app-protocol", Default: true, Parse: feature.Bool,
	Doc: "Asks backends by the protocol that the `appProtocol` of the Service's port names, unless `backend-protocol` is set: HTTPS for `https` and `kubernetes.io/wss`; " +
		"gRPC, which is HTTP/2 without TLS, for `kubernetes.io/h2c`, `grpc` and `kubernetes.io/grpc`; HTTP for all others. With false, it is HTTP for all, as in ingress-nginx.",
}

// protocolOf is the protocol of requests to a port with an application protocol, which may be
// empty. Case does not count: names of IANA have none.
func protocolOf(v feature.Values, appProtocol string) protocol {
	if p := backendProtocol.Get(v); p != unset {
		return p
	}
	if p, ok := appProtocols[strings.ToLower(appProtocol)]; ok && useAppProtocol.Get(v) {
		return p
	}
	return http
}
