package main

import (
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/controller"
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

// newPassthrough leaves it to the controller when it listens on the port for https.
func (o options) newPassthrough(s streams, socket string) tlsPassthrough {
	if !o.objects.Passthrough {
		return tlsPassthrough{}
	}
	return tlsPassthrough{s.NewTLS(o.httpsPort, socket)}
}

// controlled is nil if there is nothing to control.
func (t tlsPassthrough) controlled() controller.Passthrough {
	if t.TLS == nil {
		return nil
	}
	return t.TLS
}
