package headgatetest

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate/headgate/internal/feature"
)

// HTTP3 reports whether the NGINX of the tests can speak HTTP/3, which needs use-http3.
func (g *Instance) HTTP3() bool {
	return slices.Contains(g.Process.Capabilities().Has, string(feature.HTTP3))
}

// NewHTTP3Client makes a client that speaks nothing but HTTP/3, over one connection to this
// Instance for each host.
func (g *Instance) NewHTTP3Client() *http.Client {
	return clientOf(g.NewHTTP3Transport(nil, &tls.Config{InsecureSkipVerify: true}))
}

// NewHTTP3Transport is what such a client sends its requests with. connected, unless it is nil, gets
// the connections.
func (g *Instance) NewHTTP3Transport(connected func(*quic.Conn), config *tls.Config) *http3.Transport {
	transport := &http3.Transport{TLSClientConfig: config, DisableCompression: true}
	transport.Dial = func(ctx context.Context, _ string, c *tls.Config, settings *quic.Config) (*quic.Conn, error) {
		connection, err := quic.DialAddrEarly(ctx, Address(g.HTTPS), c, settings)
		if err == nil && connected != nil {
			connected(connection)
		}
		return connection, err
	}
	return transport
}
