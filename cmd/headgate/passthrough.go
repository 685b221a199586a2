package main

import (
	"net/netip"
	"slices"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/stream"
)

// addPassthroughFlag is for all commands: whether hosts may have TLS passthrough decides what
// is served.
func (s *selection) addPassthroughFlag(f *pflag.FlagSet) {
	f.BoolVar(&s.objects.Passthrough, "enable-ssl-passthrough", false, "allow the annotation ssl-passthrough, which passes the TLS connections for a host through to its backend")
}

func addPassthroughPortFlag(f *pflag.FlagSet) {
	f.Int("ssl-passthrough-proxy-port", 442, "port that TCP and UDP services can't have; Headgate itself uses a unix socket for what ingress-nginx uses it for")
}

// tlsPassthrough is nil without --enable-ssl-passthrough.
type tlsPassthrough struct{ *stream.TLS }

// newPassthrough listens on the port for https as soon as NGINX may.
func (o options) newPassthrough(s streams, process *nginx.Process, socket string, env plan.Environment) tlsPassthrough {
	if !o.objects.Passthrough {
		return tlsPassthrough{}
	}
	listener := s.NewTLS(o.httpsPort, socket)
	process.Share(func() ([]netip.AddrPort, error) {
		addresses := slices.DeleteFunc(o.addresses(env.IPv6), func(a netip.AddrPort) bool { return a.Port() != o.httpsPort })
		return addresses, listener.Listen(addresses)
	})
	return tlsPassthrough{listener}
}

// controlled is nil if there is nothing to control.
func (t tlsPassthrough) controlled() controller.Passthrough {
	if t.TLS == nil {
		return nil
	}
	return t.TLS
}
