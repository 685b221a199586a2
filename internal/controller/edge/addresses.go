package edge

import (
	"net/netip"
	"slices"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// CanListen returns why NGINX can't listen on an address. NGINX's own test would not find that another
// process has the port, and a reload would fail.
func (e *Edge) CanListen(a netip.Addr) error {
	if err := nginx.CheckShared(netip.AddrPortFrom(a, 0)); err != nil || e.static.Files == nil {
		// At the start, the ports are checked alone.
		return err
	}
	env, now := e.settings.Environment, e.static.Globals().Process.Listening
	if slices.Contains(now.At(env.IPv6), a) || now.OneSocket && (a.IsUnspecified() || now.HasAll()) {
		// NGINX has the port, and maybe by a socket that does not share it. See plan.
		return nil
	}
	for _, port := range []nginxconf.Port{env.HTTPPort, env.HTTPSPort} {
		if err := nginx.CheckShared(netip.AddrPortFrom(a, uint16(port))); err != nil {
			return err
		}
	}
	return nil
}

// listen says what NGINX is about to be started with. The controller listens before it does.
func (e *Edge) listen(first plan.Static) {
	own, shared := nginxconf.TCPAddresses(e.settings.Environment, first.Globals().Process.Listening)
	e.settings.Process.SetAddresses(append(own, shared...))
	if e.settings.Passthrough != nil {
		e.settings.Process.Share(func() ([]netip.AddrPort, error) { return shared, e.settings.Passthrough.Listen(shared) })
	}
}

// addAddresses listens on those that NGINX is about to listen on too.
func (e *Edge) addAddresses(next plan.Static) error {
	if e.settings.Passthrough == nil {
		return nil
	}
	_, now := nginxconf.TCPAddresses(e.settings.Environment, e.static.Globals().Process.Listening)
	_, wanted := nginxconf.TCPAddresses(e.settings.Environment, next.Globals().Process.Listening)
	return e.settings.Passthrough.Listen(append(now, wanted...))
}

// onlyAddresses listens on those alone that NGINX has.
func (e *Edge) onlyAddresses(static plan.Static) {
	own, shared := nginxconf.TCPAddresses(e.settings.Environment, static.Globals().Process.Listening)
	e.settings.Process.SetAddresses(own)
	if e.settings.Passthrough == nil {
		return
	}
	if err := e.settings.Passthrough.Listen(shared); err != nil {
		e.settings.Log.Error("listening for TLS passthrough failed", "error", err)
	}
}
