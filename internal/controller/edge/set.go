package edge

import (
	"cmp"
	"net/netip"

	"github.com/headgate/headgate/internal/controller/edge/budget"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// Set takes what was built, for the next Apply. It returns findings about what NGINX makes of it.
func (e *Edge) Set(built unit.Built) []finding.Finding {
	switch built.Kind {
	case unit.Globals:
		globals, _ := built.Model.(model.Globals)
		e.configure(globals.Process)
	case unit.Name:
		e.setPassthroughName(built)
	case unit.Backend:
		e.setPassthroughBackend(built)
	case unit.Host:
		e.setPassthroughHost(built)
	case unit.Stream:
		e.setStream(built)
	}
	e.setTraffic(built)
	e.unpushed = true
	return e.desired.Set(built)
}

// configure takes the settings that are not NGINX's.
func (e *Edge) configure(p model.Process) {
	e.limits = budget.Limits(p)
	e.shutdown.Store(int64(p.ShutdownTimeout))
	e.configureStreams(p)
	e.configureTracing(p.Tracing)
	address := p.ClientAddress
	e.passthrough = &model.TLSPassthrough{
		Workers: e.settings.Environment.WorkerProcesses(p),
		ProxyIn: address.ProxyProtocol, Trusted: address.Trusted, HeaderTimeout: address.HeaderTimeout,
	}
}

func (e *Edge) configureStreams(p model.Process) {
	if e.settings.Streams == nil {
		return
	}
	settings := p.Stream
	settings.AccessLog = settings.AccessLog && p.AccessLog
	settings.LogTarget = cmp.Or(settings.LogTarget, p.AccessLogTarget)
	e.settings.Streams.Configure(settings, p.ShutdownTimeout)
	var addresses []netip.Addr
	if l := p.Listening; len(l.Addresses) > 0 || l.NoIPv6 {
		addresses = l.At(e.settings.Environment.IPv6)
	}
	e.settings.Streams.Listen(addresses)
}

// setStream opens, changes or closes the port of a stream.
func (e *Edge) setStream(built unit.Built) {
	if e.settings.Streams == nil {
		return
	}
	var wanted *model.Stream
	if stream, found := built.Model.(model.Stream); found {
		wanted = &stream
	}
	e.settings.Streams.Set(built.Name, wanted)
}
