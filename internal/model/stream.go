package model

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/headgate/headgate/internal/model/logging"
)

// The protocols of a Stream.
const (
	TCP = "tcp"
	UDP = "udp"
)

// StreamName is the name of a Stream: its protocol, and its port as the ConfigMap has it.
func StreamName(protocol, port string) string { return protocol + "/" + port }

// A Stream is a TCP or UDP port whose connections are passed on to the endpoints of a
// Service, without NGINX.
type Stream struct {
	// Protocol is TCP or UDP.
	Protocol string
	Port     uint16
	// Namespace, Service and ServicePort name the backend.
	Namespace, Service, ServicePort string
	// ProxyIn expects the PROXY protocol from clients, ProxyOut speaks it to endpoints.
	ProxyIn, ProxyOut bool
	// Endpoints are the addresses to connect to. The port is closed without any.
	Endpoints []netip.AddrPort
	// Object and Field name the entry, for findings.
	Object, Field string
}

// Name is the name of the stream.
func (s *Stream) Name() string { return StreamName(s.Protocol, fmt.Sprint(s.Port)) }

// A StreamSettings is what applies to all streams.
type StreamSettings struct {
	// Idle is how long a connection or a session may be idle.
	Idle time.Duration
	// NextEndpoint tries another endpoint if one can't be connected to; in all for at most
	// NextTimeout, and Tries endpoints. 0 is without limit.
	NextEndpoint bool
	NextTimeout  time.Duration
	Tries        int
	// Responses is how many datagrams of an endpoint answer one of the client.
	Responses int
	// AccessLog writes a line of the form LogFormat for each connection or session.
	AccessLog bool
	LogFormat logging.StreamFormat
	// LogTarget is where the lines go.
	LogTarget logging.Target
}

// DefaultStreamSettings are those of ingress-nginx.
func DefaultStreamSettings() StreamSettings {
	return StreamSettings{
		Idle: 600 * time.Second, NextEndpoint: true, NextTimeout: 600 * time.Second, Tries: Tries, Responses: 1,
		AccessLog: true, LogFormat: logging.DefaultStreamFormat(),
	}
}

// A TLSPassthrough is what applies to connections for https before it is known whether they
// are passed through.
type TLSPassthrough struct {
	// Workers is the number of NGINX's workers, each of which listens.
	Workers int
	// ProxyIn expects the PROXY protocol from clients: from load balancers in the networks
	// Trusted, whose headers count, and from others. HeaderTimeout is how long they may
	// take to send it.
	ProxyIn       bool
	Trusted       []netip.Prefix
	HeaderTimeout time.Duration
}
