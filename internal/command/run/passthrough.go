package run

import (
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/stream"
)

// tlsPassthrough is nil without --enable-ssl-passthrough.
type tlsPassthrough struct{ *stream.TLS }

// newPassthrough leaves it to the controller when it listens on the port for https.
func (o program) newPassthrough(s streams, socket string) tlsPassthrough {
	if !o.Objects.Passthrough {
		return tlsPassthrough{}
	}
	return tlsPassthrough{s.NewTLS(o.HTTPSPort, socket)}
}

// controlled is nil if there is nothing to control.
func (t tlsPassthrough) controlled() edge.Passthrough {
	if t.TLS == nil {
		return nil
	}
	return t.TLS
}
