package edge

import (
	"net/netip"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// Passthrough passes the TLS connections for some hosts through to backends. Its methods
// must not block.
type Passthrough interface {
	// Listen listens on addresses beside NGINX, and no longer on others.
	Listen(addresses []netip.AddrPort) error
	// Configure sets what applies to all connections. It is called first when all hosts and
	// backends are set.
	Configure(model.TLSPassthrough)
	// SetHost passes a host through to a backend, or has NGINX serve it if that is empty.
	SetHost(host, backend string)
	// SetName notes whether Ingresses have a name, which may be below a host that is a wildcard.
	SetName(name string, known bool)
	// SetBackend sets the endpoints of a backend.
	SetBackend(key string, endpoints []netip.AddrPort)
	// RemoveBackend removes a backend once no host leads to it.
	RemoveBackend(key string)
}

// configurePassthrough applies the options to TLS connections. At the start it comes after
// all hosts and backends: NGINX would get the first connections for hosts that it must not
// serve.
func (e *Edge) configurePassthrough() {
	if e.settings.Passthrough != nil && e.passthrough != nil {
		e.settings.Passthrough.Configure(*e.passthrough)
	}
	e.passthrough = nil
}

// setPassthroughHost says where TLS connections for a host go.
func (e *Edge) setPassthroughHost(built unit.Built) {
	if e.settings.Passthrough == nil {
		return
	}
	host, _ := built.Model.(model.Host)
	e.settings.Passthrough.SetHost(built.Name, host.Passthrough)
}

func (e *Edge) setPassthroughName(built unit.Built) {
	if e.settings.Passthrough == nil {
		return
	}
	_, known := built.Model.(model.Name)
	e.settings.Passthrough.SetName(built.Name, known)
}

func (e *Edge) setPassthroughBackend(built unit.Built) {
	if e.settings.Passthrough == nil {
		return
	}
	backend, found := built.Model.(model.Backend)
	if !found {
		// A host that is still to be built again may lead to it.
		e.settings.Passthrough.RemoveBackend(built.Name)
		return
	}
	e.settings.Passthrough.SetBackend(built.Name, backend.Endpoints)
}
