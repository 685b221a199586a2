// Package logline writes the line of the access log about a connection, or a session of UDP.
package logline

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/model"
)

// A Record is what is known of a connection or session when it has ended.
type Record struct {
	// ID is the number of the connection.
	ID     uint64
	Stream *model.Stream
	Began  time.Time
	// Client and Local are the ends of the connection as the client has them; Proxied is who
	// said so, if it is not the client itself.
	Client, Local, Proxied netip.AddrPort
	Status                 int
	// Received and Sent are the bytes from the client and to it.
	Received, Sent int64
	// Endpoints are those that were tried.
	Endpoints []netip.AddrPort
	connected []time.Duration // -1: failed
}

// Tried notes an attempt to connect to an endpoint.
func (r *Record) Tried(endpoint netip.AddrPort, took time.Duration, ok bool) {
	if !ok {
		took = -1
	}
	r.Endpoints, r.connected = append(r.Endpoints, endpoint), append(r.connected, took)
}

// A Format writes the line of a Record.
type Format []func([]byte, *Record, time.Time) []byte

// NewFormat prepares a format.
func NewFormat(format logging.StreamFormat) Format {
	hostname, _ := os.Hostname() // As in NGINX, it is looked up once.
	all := variables(hostname)
	var f Format
	for _, part := range format.Parts() {
		write := all[part.Variable]
		if part.Variable == "" {
			write = func(b []byte, _ *Record, _ time.Time) []byte { return append(b, part.Text...) }
		}
		f = append(f, write)
	}
	return f
}

// Line is that of a connection that ends now, with its line break.
func (f Format) Line(r *Record, now time.Time) []byte {
	b := make([]byte, 0, 128)
	for _, write := range f {
		b = write(b, r, now)
	}
	return append(b, '\n')
}

// variables are those of logging.StreamVariables.
func variables(hostname string) map[string]func([]byte, *Record, time.Time) []byte {
	pid := strconv.Itoa(os.Getpid())
	number := func(of func(*Record) int64) func([]byte, *Record, time.Time) []byte {
		return func(b []byte, r *Record, _ time.Time) []byte { return strconv.AppendInt(b, of(r), 10) }
	}
	text := func(of func(*Record) string) func([]byte, *Record, time.Time) []byte {
		return func(b []byte, r *Record, _ time.Time) []byte { return append(b, of(r)...) }
	}
	address := func(of func(*Record) netip.AddrPort) func([]byte, *Record, time.Time) []byte {
		return func(b []byte, r *Record, _ time.Time) []byte {
			if a := of(r); a.IsValid() {
				return a.Addr().AppendTo(b)
			}
			return b
		}
	}
	port := func(of func(*Record) netip.AddrPort) func([]byte, *Record, time.Time) []byte {
		return func(b []byte, r *Record, _ time.Time) []byte {
			if a := of(r); a.IsValid() {
				return strconv.AppendUint(b, uint64(a.Port()), 10)
			}
			return b
		}
	}
	at := func(layout string) func([]byte, *Record, time.Time) []byte {
		return func(b []byte, _ *Record, now time.Time) []byte { return now.AppendFormat(b, layout) }
	}
	client := func(r *Record) netip.AddrPort { return r.Client }
	proxied := func(r *Record) netip.AddrPort {
		if r.Proxied.IsValid() {
			return r.Client
		}
		return netip.AddrPort{}
	}
	lasted := func(b []byte, r *Record, now time.Time) []byte { return appendSeconds(b, now.Sub(r.Began)) }
	return map[string]func([]byte, *Record, time.Time) []byte{
		"bytes_received": number(func(r *Record) int64 { return r.Received }),
		"bytes_sent":     number(func(r *Record) int64 { return r.Sent }),
		"connection":     number(func(r *Record) int64 { return int64(r.ID) }),
		"hostname":       text(func(*Record) string { return hostname }),
		"msec": func(b []byte, _ *Record, now time.Time) []byte {
			return appendSeconds(b, time.Duration(now.UnixNano()))
		},
		"pid":                     text(func(*Record) string { return pid }),
		"protocol":                text(func(r *Record) string { return strings.ToUpper(r.Stream.Protocol) }),
		"proxy_protocol_addr":     address(proxied),
		"proxy_protocol_port":     port(proxied),
		"proxy_upstream_name":     text(upstreamName),
		"remote_addr":             address(client),
		"remote_port":             port(client),
		"server_addr":             address(func(r *Record) netip.AddrPort { return r.Local }),
		"server_port":             port(func(r *Record) netip.AddrPort { return r.Local }),
		"session_time":            lasted,
		"status":                  number(func(r *Record) int64 { return int64(r.Status) }),
		"time_iso8601":            at("2006-01-02T15:04:05-07:00"),
		"time_local":              at("02/Jan/2006:15:04:05 -0700"),
		"upstream_addr":           text(upstreamAddresses),
		"upstream_bytes_received": number(func(r *Record) int64 { return r.Sent }),
		"upstream_bytes_sent":     number(func(r *Record) int64 { return r.Received }),
		"upstream_connect_time":   text(connectTimes),
		"upstream_session_time":   lasted,
	}
}

func upstreamName(r *Record) string {
	return r.Stream.Protocol + "-" + r.Stream.Namespace + "-" + r.Stream.Service + "-" + r.Stream.ServicePort
}

func upstreamAddresses(r *Record) string {
	list := make([]string, len(r.Endpoints))
	for i, e := range r.Endpoints {
		list[i] = e.String()
	}
	return orDash(list)
}

func connectTimes(r *Record) string {
	list := make([]string, len(r.connected))
	for i, took := range r.connected {
		list[i] = "-"
		if took >= 0 {
			list[i] = string(appendSeconds(nil, took))
		}
	}
	return orDash(list)
}

func orDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

// appendSeconds has milliseconds, as in NGINX.
func appendSeconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, d.Truncate(time.Millisecond).Seconds(), 'f', 3, 64)
}
