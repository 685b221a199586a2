package controller

import (
	"context"
	"net/netip"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
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
			err := c.edge.CanListen(a)
			c.sockets.tried[a] = err == nil
			return err
		},
		Last: func() []netip.Addr { return c.sockets.last.Addresses },
	}
}

// lookAtAddresses builds the options again if an address has come or gone. NGINX keeps a socket whose address has
// gone, but could neither test its configuration nor be started again.
func (c *Controller) lookAtAddresses(ctx context.Context) {
	changed := false
	for a, could := range c.sockets.tried {
		changed = changed || could != (c.edge.CanListen(a) == nil)
	}
	if !changed {
		return
	}
	clear(c.sockets.tried)
	c.buildAll([]unit.Key{unit.GlobalsKey})
	c.edge.Apply(ctx)
}
