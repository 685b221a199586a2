package stream

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/model"
)

// A record is what is known of a connection or session when it has ended.
type record struct {
	id     uint64
	stream *model.Stream
	began  time.Time
	// client and local are the ends of the connection as the client has them; proxied is who
	// said so, if it is not the client itself.
	client, local, proxied netip.AddrPort
	status                 int
	received, sent         int64
	endpoints              []netip.AddrPort
	connected              []time.Duration // -1: failed
}

// tried notes an attempt to connect to an endpoint.
func (r *record) tried(endpoint netip.AddrPort, took time.Duration, ok bool) {
	if !ok {
		took = -1
	}
	r.endpoints, r.connected = append(r.endpoints, endpoint), append(r.connected, took)
}

// A lineFormat writes the line of a record.
type lineFormat []func([]byte, *record, time.Time) []byte

func newLineFormat(format logging.StreamFormat) lineFormat {
	hostname, _ := os.Hostname() // As in NGINX, it is looked up once.
	all := variables(hostname)
	var f lineFormat
	for _, part := range format.Parts() {
		write := all[part.Variable]
		if part.Variable == "" {
			write = func(b []byte, _ *record, _ time.Time) []byte { return append(b, part.Text...) }
		}
		f = append(f, write)
	}
	return f
}

func (f lineFormat) line(r *record, now time.Time) []byte {
	b := make([]byte, 0, 128)
	for _, write := range f {
		b = write(b, r, now)
	}
	return append(b, '\n')
}

// variables are those of logging.StreamVariables.
func variables(hostname string) map[string]func([]byte, *record, time.Time) []byte {
	pid := strconv.Itoa(os.Getpid())
	number := func(of func(*record) int64) func([]byte, *record, time.Time) []byte {
		return func(b []byte, r *record, _ time.Time) []byte { return strconv.AppendInt(b, of(r), 10) }
	}
	text := func(of func(*record) string) func([]byte, *record, time.Time) []byte {
		return func(b []byte, r *record, _ time.Time) []byte { return append(b, of(r)...) }
	}
	address := func(of func(*record) netip.AddrPort) func([]byte, *record, time.Time) []byte {
		return func(b []byte, r *record, _ time.Time) []byte {
			if a := of(r); a.IsValid() {
				return a.Addr().AppendTo(b)
			}
			return b
		}
	}
	port := func(of func(*record) netip.AddrPort) func([]byte, *record, time.Time) []byte {
		return func(b []byte, r *record, _ time.Time) []byte {
			if a := of(r); a.IsValid() {
				return strconv.AppendUint(b, uint64(a.Port()), 10)
			}
			return b
		}
	}
	at := func(layout string) func([]byte, *record, time.Time) []byte {
		return func(b []byte, _ *record, now time.Time) []byte { return now.AppendFormat(b, layout) }
	}
	client := func(r *record) netip.AddrPort { return r.client }
	proxied := func(r *record) netip.AddrPort {
		if r.proxied.IsValid() {
			return r.client
		}
		return netip.AddrPort{}
	}
	lasted := func(b []byte, r *record, now time.Time) []byte { return appendSeconds(b, now.Sub(r.began)) }
	return map[string]func([]byte, *record, time.Time) []byte{
		"bytes_received": number(func(r *record) int64 { return r.received }),
		"bytes_sent":     number(func(r *record) int64 { return r.sent }),
		"connection":     number(func(r *record) int64 { return int64(r.id) }),
		"hostname":       text(func(*record) string { return hostname }),
		"msec": func(b []byte, _ *record, now time.Time) []byte {
			return appendSeconds(b, time.Duration(now.UnixNano()))
		},
		"pid":                     text(func(*record) string { return pid }),
		"protocol":                text(func(r *record) string { return strings.ToUpper(r.stream.Protocol) }),
		"proxy_protocol_addr":     address(proxied),
		"proxy_protocol_port":     port(proxied),
		"proxy_upstream_name":     text(upstreamName),
		"remote_addr":             address(client),
		"remote_port":             port(client),
		"server_addr":             address(func(r *record) netip.AddrPort { return r.local }),
		"server_port":             port(func(r *record) netip.AddrPort { return r.local }),
		"session_time":            lasted,
		"status":                  number(func(r *record) int64 { return int64(r.status) }),
		"time_iso8601":            at("2006-01-02T15:04:05-07:00"),
		"time_local":              at("02/Jan/2006:15:04:05 -0700"),
		"upstream_addr":           text(upstreamAddresses),
		"upstream_bytes_received": number(func(r *record) int64 { return r.sent }),
		"upstream_bytes_sent":     number(func(r *record) int64 { return r.received }),
		"upstream_connect_time":   text(connectTimes),
		"upstream_session_time":   lasted,
	}
}

func upstreamName(r *record) string {
	return r.stream.Protocol + "-" + r.stream.Namespace + "-" + r.stream.Service + "-" + r.stream.ServicePort
}

func upstreamAddresses(r *record) string {
	list := make([]string, len(r.endpoints))
	for i, e := range r.endpoints {
		list[i] = e.String()
	}
	return orDash(list)
}

func connectTimes(r *record) string {
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

// finish counts and logs a connection or session that has ended.
func (l *listening) finish(now *current, r *record) {
	l.counters.end(r.status)
	if now.AccessLog && l.server.settings.AccessLog != nil {
		// The log drops lines rather than fail.
		_, _ = l.server.settings.AccessLog.Write(now.line.line(r, time.Now()))
	}
}
