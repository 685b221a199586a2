// Package prediction is what features predict of a simulated request: what they answer to it,
// and which backend they choose. It is plain data, and knows no feature.
package prediction

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/headgate/headgate/internal/syntax/template"
)

// A Request is a request whose response is predicted.
type Request struct {
	// Scheme is http or https. Method is in capitals.
	Scheme, Method string
	// Encrypted is set where the connection to NGINX is TLS, also if a believed load
	// balancer says that the scheme is http.
	Encrypted bool
	// HostName is the name asked for, lower case and without a port.
	HostName string
	// URI is the path and query as a client sends them, Path the path alone as
	// routes are compared with it.
	URI, Path string
	// Headers are by canonical name, as in net/http.
	Headers map[string][]string
	// From is the client's address, its zero value if it is not known.
	From netip.Addr
	// HasTLS is set where an Ingress of the host has a TLS section.
	HasTLS bool
	// Authority is the host as the client writes it, with a port if it does.
	Authority string
	// Asked is the host, with a port if there is one, that a believed load balancer says the
	// client asked for; empty if none does.
	Asked string
	// Relative is set where redirects on the route leave scheme and host out.
	Relative bool
	// Jumps is set where the request jumps to a location for the route's profile and
	// variant, and is checked before that.
	Jumps bool
	// HTTPSPort is the port for https.
	HTTPSPort uint16
	// Policy is the feature's on the route, Global its setting for all requests,
	// nil if it has none.
	Policy, Global any
	// Backend is the key of the route's own backend, empty where no rule asks for the route.
	Backend string
	// HasEndpoint reports whether a backend, by its key, has an endpoint.
	HasEndpoint func(backend string) bool
}

// An Answer is what a feature answers instead of a backend.
type Answer struct {
	// Status is an HTTP status, 0 where the feature lets the request pass.
	Status int
	// Location is where a redirect leads.
	Location string
	// Why is the reason, as a sentence. With Status 0 it says on what it depends
	// whether the request passes; it is empty if the request passes in any case.
	Why string
	// Neutral is set where an auth check neither lets the request pass nor denies it.
	Neutral bool
}

// A Choice says which of a route's canaries get a request.
type Choice struct {
	// Backend is the key of the canary that gets the request for sure. If it is empty,
	// Shares decide, or else the route's own backend gets it. Why is the reason, as a
	// sentence; it may be empty where Shares decide.
	Backend, Why string
	// Whens say, for each canary, which requests it gets.
	Whens []string
	// Shares are, in the same order, the shares of such requests that each canary
	// gets, from 0 to 1. The rest goes to the route's own backend.
	Shares []float64
}

// Header is what NGINX has in $http_NAME. It ignores headers with underscores.
func (q Request) Header(name string) (value string, ok bool) {
	if name == "host" && len(q.Headers["Host"]) == 0 {
		return q.Authority, q.Authority != ""
	}
	var values []string
	for header, all := range q.Headers {
		if !strings.Contains(header, "_") && strings.ReplaceAll(strings.ToLower(header), "-", "_") == name {
			values = append(values, all...)
		}
	}
	return strings.Join(values, ", "), len(values) > 0
}

// Cookie is what NGINX has in $cookie_NAME: the first one, case-insensitively.
func (q Request) Cookie(name string) (value string, ok bool) {
	for _, line := range q.Headers["Cookie"] {
		for cookie := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == ';' || c == ',' }) {
			key, value, ok := strings.Cut(cookie, "=")
			if ok && strings.EqualFold(strings.Trim(key, " "), name) {
				return strings.TrimLeft(value, " "), true
			}
		}
	}
	return "", false
}

// Query is the part of the URI after the question mark.
func (q Request) Query() string {
	_, query, _ := strings.Cut(q.URI, "?")
	return query
}

// Expand fills a template in for a simulated request: group returns the text of a group of the route's path.
// Variables that only a real request has keep their names.
func Expand(t template.Template, q Request, group func(name string) (text string, ok bool)) string {
	var b strings.Builder
	for _, p := range t {
		text, ok := p.Literal, p.Variable == ""
		switch p.Variable {
		case "host":
			text, ok = q.HostName, true
		case "scheme", "pass_access_scheme":
			text, ok = q.Scheme, true
		case "uri":
			text, ok = q.Path, true
		case "request_uri":
			text, ok = q.URI, true
		case "request_method":
			text, ok = q.Method, true
		case "args", "query_string":
			text, ok = q.Query(), true
		case "http":
			text, _ = q.Header(strings.ToLower(p.Name))
			ok = true
		case "cookie":
			text, _ = q.Cookie(p.Name)
			ok = true
		case "group":
			text, ok = group(p.Name)
		}
		if !ok {
			text = "$" + strings.Trim(p.Variable+"_"+p.Name, "_")
			if p.Variable == "group" {
				text = "$" + p.Name
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// EscapePath writes a path as ngx.escape_uri does with its type 0.
func EscapePath(path string) string {
	const plain = "-._~!$&'()*+,;=:@/"
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
