package e2e_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// An httpClient speaks one version of HTTP and has one connection. It opens another one only when
// the server has said that this one ends, or a request has failed.
type httpClient struct {
	*http.Client
	major int
	end   func()
}

// overHTTP2 returns a client of HTTP/2.
func (h *headgate) overHTTP2() httpClient {
	transport := h.cluster.Transport(h.at(httpsPort))
	transport.TLSClientConfig = anyCertificate()
	return httpClient{&http.Client{Transport: transport, CheckRedirect: stay}, 2, transport.CloseIdleConnections}
}

// overHTTP3 returns a client of HTTP/3. As in browsers, each connection has a UDP port of its own:
// kube-proxy sends all that comes from a port to one pod, for as long as that pod is ready.
func (h *headgate) overHTTP3() httpClient {
	r := &roaming{connect: h.newHTTP3Transport}
	return httpClient{&http.Client{Transport: r, CheckRedirect: stay}, 3, r.end}
}

// A roaming transport uses another connection after an answer that asks clients to use no HTTP/3 of the host
// any more: as a client that follows, and whose request over HTTP/2 in between was offered HTTP/3 again. It sends one
// request at a time.
type roaming struct {
	connect func() *http3.Transport
	current *http3.Transport
	left    bool
}

func (r *roaming) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.left || r.current == nil {
		r.end()
		r.current, r.left = r.connect(), false
	}
	response, err := r.current.RoundTrip(request)
	r.left = err == nil && response.Header.Get("Alt-Svc") == "clear"
	return response, err
}

func (r *roaming) end() {
	if r.current != nil {
		r.current.Close()
	}
}

func (h *headgate) newHTTP3Transport() *http3.Transport {
	at := h.at(httpsPort)
	transport := &http3.Transport{TLSClientConfig: anyCertificate()}
	transport.Dial = func(ctx context.Context, _ string, c *tls.Config, settings *quic.Config) (*quic.Conn, error) {
		address, err := net.ResolveUDPAddr("udp", at)
		if err != nil {
			return nil, err
		}
		socket, err := h.cluster.ListenPacket("udp", ":0")
		if err != nil {
			return nil, err
		}
		connection, err := quic.DialEarly(ctx, socket, address, c, settings)
		if err != nil {
			socket.Close()
			return nil, err
		}
		context.AfterFunc(connection.Context(), func() { socket.Close() })
		return connection, nil
	}
	return transport
}
