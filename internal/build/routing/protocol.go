package routing

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
)

// protocols are the application protocols of the ports of a host's Services, see
// endpoint.AppProtocols. They are read once: many routes may lead to a Service with many
// ports.
type protocols map[types.NamespacedName]map[string]string

// appProtocol is the application protocol of the port that a backend is, empty for none.
func (l *hostBuilder) appProtocol(backend string) string {
	service, port, ok := spec.SplitKey(backend)
	if !ok {
		return ""
	}
	ports, known := l.protocols[service]
	if !known {
		if l.protocols == nil {
			l.protocols = protocols{}
		}
		ports = endpoint.AppProtocols(l.view.Service(service))
		l.protocols[service] = ports
	}
	return ports[port]
}

// checkProtocol reports a canary that the route asks by another protocol than the port of
// the canary's Service says: a route has one protocol for all of its backends.
func (l *hostBuilder) checkProtocol(p *contribution, o offer) {
	route := &l.routes[o.route]
	own := l.appProtocol(o.Backend)
	if route.speaks == nil || route.speaks(own) {
		return
	}
	l.findings = append(l.findings, finding.Finding{
		Object: spec.ObjectName(p.Ingress), Field: o.field + ".backend", Code: finding.Conflict,
		Message: fmt.Sprintf("the Service's port has %s, and that of the route %s of host %s has %s: must be of the same protocol",
			written(own), finding.Shorten(o.where.String()), l.host, written(l.appProtocol(route.Backend))),
		Effect: "the canary is asked by the protocol of the route",
	})
}

func written(appProtocol string) string {
	if appProtocol == "" {
		return "no appProtocol"
	}
	return "appProtocol " + finding.Shorten(appProtocol)
}
