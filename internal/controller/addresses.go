package controller

import (
	"context"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// sockets are what was found out about addresses to listen on.
type sockets struct {
	// last is what the options that were built last say.
	last model.Listening
	// tried has, for each address that was asked for, whether it can be listened on.
	tried map[netip.Addr]bool
}

func (c *Controller) socketsOfBuild() feature.Sockets {
	return feature.Sockets{
		Bind: func(a netip.Addr) error {
			err := c.canListen(a)
			c.sockets.tried[a] = err == nil
			return err
		},
		Last: func() []netip.Addr { return c.sockets.last.Addresses },
	}
}

// canListen returns why NGINX can't listen on an address. NGINX's own test would not find that another
// process has the port, and a reload would fail.
func (c *Controller) canListen(a netip.Addr) error {
	if err := nginx.CheckShared(netip.AddrPortFrom(a, 0)); err != nil || c.static.Files == nil {
		// At the start, the ports are checked alone.
		return err
	}
	env, now := c.settings.Environment, c.static.Globals().Process.Listening
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

// lookAtAddresses builds the options again if an address has come or gone. NGINX keeps a socket whose address has
// gone, but could neither test its configuration nor be started again.
func (c *Controller) lookAtAddresses(ctx context.Context) {
	changed := false
	for a, could := range c.sockets.tried {
		changed = changed || could != (c.canListen(a) == nil)
	}
	if !changed {
		return
	}
	clear(c.sockets.tried)
	c.buildAll([]unit.Key{unit.GlobalsKey})
	c.configurePassthrough()
	c.apply(ctx)
}

// listen says what NGINX is about to be started with. The controller listens before it does.
func (c *Controller) listen(first plan.Static) {
	own, shared := nginxconf.TCPAddresses(c.settings.Environment, first.Globals().Process.Listening)
	c.settings.Process.SetAddresses(append(own, shared...))
	if c.settings.Passthrough != nil {
		c.settings.Process.Share(func() ([]netip.AddrPort, error) { return shared, c.settings.Passthrough.Listen(shared) })
	}
}

// addAddresses listens on those that NGINX is about to listen on too.
func (c *Controller) addAddresses(next plan.Static) error {
	if c.settings.Passthrough == nil {
		return nil
	}
	_, now := nginxconf.TCPAddresses(c.settings.Environment, c.static.Globals().Process.Listening)
	_, wanted := nginxconf.TCPAddresses(c.settings.Environment, next.Globals().Process.Listening)
	return c.settings.Passthrough.Listen(append(now, wanted...))
}

// onlyAddresses listens on those alone that NGINX has.
func (c *Controller) onlyAddresses(static plan.Static) {
	own, shared := nginxconf.TCPAddresses(c.settings.Environment, static.Globals().Process.Listening)
	c.settings.Process.SetAddresses(own)
	if c.settings.Passthrough == nil {
		return
	}
	if err := c.settings.Passthrough.Listen(shared); err != nil {
		c.log.Error("listening for TLS passthrough failed", "error", err)
	}
}
