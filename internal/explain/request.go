package explain

import (
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
)

// A Query is the request to explain.
type Query struct {
	// URL has the scheme http or https; without a scheme it is http. The path is
	// used as written.
	URL string
	// Method is GET if it is empty.
	Method string
	// Headers have the form "Name: value". Host replaces that of the URL.
	Headers []string
	// From is the client's address. It may be empty.
	From string
}

// A QueryError is a mistake in a query.
type QueryError struct{ err error }

func (e *QueryError) Error() string { return e.err.Error() }

// An invalidRequest is one that NGINX answers with 400.
type invalidRequest struct{ error }

// A request is one with what the client writes: the target of the request line, and the host with a port
// if it has one.
type request struct {
	report.Request
	uri, authority string
}

// parse reads a query. With an invalidRequest, it returns the request as far as it
// was read.
func parse(q Query) (r request, from netip.Addr, err error) {
	r.Request = report.Request{URL: q.URL, Method: strings.ToUpper(q.Method), Scheme: "http", From: q.From}
	if r.Method == "" {
		r.Method = "GET"
	}
	if q.From != "" {
		if from, err = netip.ParseAddr(q.From); err != nil {
			return r, from, fmt.Errorf("invalid value %q of --from: must be an IP address", q.From)
		}
	}
	host, target, err := cutURL(q.URL, &r)
	if err != nil {
		return r, from, err
	}
	if r.Headers, err = parseHeaders(q.Headers); err != nil {
		return r, from, err
	}
	r.TLSName = strings.ToLower(strings.TrimSuffix(host, "."))
	if named := r.Headers["Host"]; len(named) > 0 {
		host, r.authority = named[0], named[0]
	}
	r.uri = target
	read, err := router.Target(target)
	if err != nil {
		return r, from, invalidRequest{errors.New("NGINX rejects the path")}
	}
	r.Path, r.Query = read.Path, read.Query
	if host == "" {
		r.Host = model.DefaultHost
		return r, from, nil
	}
	if r.Host, err = router.HostName(host); err != nil {
		return r, from, invalidRequest{fmt.Errorf("NGINX rejects the Host %q", host)}
	}
	return r, from, nil
}

// cutURL splits a URL into the host and the target of the request line, without
// changing how they are written.
func cutURL(text string, r *request) (host, target string, err error) {
	rest := text
	if scheme, after, ok := strings.Cut(text, "://"); ok {
		r.Scheme, rest = strings.ToLower(scheme), after
		if r.Scheme != "http" && r.Scheme != "https" {
			return "", "", fmt.Errorf("invalid URL %q: the scheme must be http or https", text)
		}
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, target := rest[:end], rest[end:]
	target, _, _ = strings.Cut(target, "#")
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	parsed, err := url.Parse("http://" + authority)
	if err != nil || parsed.Host != authority {
		return "", "", fmt.Errorf("invalid URL %q: %q is not a host with an optional port", text, authority)
	}
	r.authority = authority
	host = parsed.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host, target, nil
}

func parseHeaders(lines []string) (map[string][]string, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	headers := map[string][]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return nil, fmt.Errorf("invalid value %q of --header: must be 'Name: value'", line)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		headers[name] = append(slices.Clip(headers[name]), strings.TrimSpace(value))
	}
	return headers, nil
}
