package model

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
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
	LogFormat StreamLogFormat
	// LogTarget is where the lines go.
	LogTarget LogTarget
}

// DefaultStreamSettings are those of ingress-nginx.
func DefaultStreamSettings() StreamSettings {
	return StreamSettings{
		Idle: 600 * time.Second, NextEndpoint: true, NextTimeout: 600 * time.Second, Tries: Tries, Responses: 1,
		AccessLog: true, LogFormat: StreamLogFormat{DefaultStreamLogFormat},
	}
}

// DefaultStreamLogFormat is the form of lines of the access log.
const DefaultStreamLogFormat = "[$remote_addr] [$time_local] $protocol $status $bytes_sent $bytes_received $session_time"

// A StreamLogFormat is the form of a line of the access log: text and variables.
type StreamLogFormat struct{ text string }

// A StreamLogPart is a text, or the variable of that name.
type StreamLogPart struct{ Text, Variable string }

// String is the form as it is written.
func (f StreamLogFormat) String() string { return f.text }

// Parts are those of the line, in their order.
func (f StreamLogFormat) Parts() []StreamLogPart {
	var parts []StreamLogPart
	for text := f.text; text != ""; {
		plain, rest, found := strings.Cut(text, "$")
		if plain != "" {
			parts = append(parts, StreamLogPart{Text: plain})
		}
		if !found {
			break
		}
		var name string
		name, text = cutVariable(rest)
		parts = append(parts, StreamLogPart{Variable: name})
	}
	return parts
}

// StreamVariables are the variables of log lines, sorted.
func StreamVariables() []string {
	return []string{
		"bytes_received", "bytes_sent", "connection", "hostname", "msec", "pid", "protocol", "proxy_protocol_addr", "proxy_protocol_port",
		"proxy_upstream_name", "remote_addr", "remote_port", "server_addr", "server_port", "session_time", "status", "time_iso8601",
		"time_local", "upstream_addr", "upstream_bytes_received", "upstream_bytes_sent", "upstream_connect_time", "upstream_session_time",
	}
}

const maxStreamLogFormat = 4096

// NewStreamLogFormat checks a form, with variables as in NGINX: $name or ${name}.
func NewStreamLogFormat(text string) (StreamLogFormat, error) {
	switch {
	case len(text) > maxStreamLogFormat:
		return StreamLogFormat{}, fmt.Errorf("must have at most %d bytes", maxStreamLogFormat)
	case strings.ContainsAny(text, "\r\n\x00"):
		return StreamLogFormat{}, errors.New("must be one line")
	}
	f := StreamLogFormat{text}
	for _, part := range f.Parts() {
		if part.Text == "" && !slices.Contains(StreamVariables(), part.Variable) {
			return StreamLogFormat{}, fmt.Errorf("must have no variables but $%s", strings.Join(StreamVariables(), ", $"))
		}
	}
	return f, nil
}

// cutVariable cuts the name of a variable, without its dollar, from the text.
func cutVariable(text string) (name, rest string) {
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		if name, rest, ok = strings.Cut(inner, "}"); !ok {
			return "", ""
		}
		return name, rest
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:]
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
