package logging

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// defaultStreamFormat is that of ingress-nginx.
const defaultStreamFormat = "[$remote_addr] [$time_local] $protocol $status $bytes_sent $bytes_received $session_time"

// A StreamFormat is the form of a line of the access log: text and variables.
type StreamFormat struct{ text string }

// A StreamPart is a text, or the variable of that name.
type StreamPart struct{ Text, Variable string }

// String is the form as it is written.
func (f StreamFormat) String() string { return f.text }

// Parts are those of the line, in their order.
func (f StreamFormat) Parts() []StreamPart {
	var parts []StreamPart
	for text := f.text; text != ""; {
		plain, rest, found := strings.Cut(text, "$")
		if plain != "" {
			parts = append(parts, StreamPart{Text: plain})
		}
		if !found {
			break
		}
		var name string
		name, text = nginxsyntax.CutVariable(rest)
		parts = append(parts, StreamPart{Variable: name})
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

const maxStreamFormat = 4096

// NewStreamFormat checks a form, with variables as in NGINX: $name or ${name}.
func NewStreamFormat(text string) (StreamFormat, error) {
	switch {
	case len(text) > maxStreamFormat:
		return StreamFormat{}, fmt.Errorf("must have at most %d bytes", maxStreamFormat)
	case strings.ContainsAny(text, "\r\n\x00"):
		return StreamFormat{}, errors.New("must be one line")
	}
	f := StreamFormat{text}
	for _, part := range f.Parts() {
		if part.Text == "" && !slices.Contains(StreamVariables(), part.Variable) {
			return StreamFormat{}, fmt.Errorf("must have no variables but $%s", strings.Join(StreamVariables(), ", $"))
		}
	}
	return f, nil
}

// DefaultStreamFormat is the form of ingress-nginx.
func DefaultStreamFormat() StreamFormat { return StreamFormat{defaultStreamFormat} }
