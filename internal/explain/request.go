package explain

import (
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
)

// A Question is what someone wants to know.
type Question struct {
	// URL is one of http or https; without a scheme it is http. The path is
	// taken as it is written.
	URL string
	// Method is GET if it is empty.
	Method string
	// Headers are written "Name: value". Host takes the place of the URL's.
	Headers []string
	// From is the client's address, empty if it does not matter.
	From string
}

// A QuestionError says what is wrong with a question.
type QuestionError struct{ err error }

func (e *QuestionError) Error() string { return e.err.Error() }

// A refusal is what NGINX answers 400 to.
type refusal struct{ error }

// parse reads a question. A refusal comes with the request as far as it could
// be read.
func parse(q Question) (r Request, from netip.Addr, err error) {
	r = Request{URL: q.URL, Method: strings.ToUpper(q.Method), Scheme: "http", From: q.From}
	if r.Method == "" {
		r.Method = "GET"
	}
	if q.From != "" {
		if from, err = netip.ParseAddr(q.From); err != nil {
			return r, from, fmt.Errorf("--from %q is no IP address", q.From)
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
		return r, from, refusal{errors.New("the path is none that NGINX takes")}
	}
	r.Path, r.Query = read.Path, read.Query
	if host == "" {
		r.Host = model.DefaultHost
		return r, from, nil
	}
	if r.Host, err = router.HostName(host); err != nil {
		return r, from, refusal{fmt.Errorf("the Host %q is none that NGINX takes", host)}
	}
	return r, from, nil
}

// cutURL takes the name and what a client would write in the request line out
// of an URL, without touching how that is written.
func cutURL(text string, r *Request) (host, target string, err error) {
	rest := text
	if scheme, after, ok := strings.Cut(text, "://"); ok {
		r.Scheme, rest = strings.ToLower(scheme), after
		if r.Scheme != "http" && r.Scheme != "https" {
			return "", "", fmt.Errorf("URL %q: allowed are http and https", text)
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
		return "", "", fmt.Errorf("URL %q: %q is no name with a port", text, authority)
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
			return nil, fmt.Errorf("--header %q: allowed is 'Name: value'", line)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		headers[name] = append(slices.Clip(headers[name]), strings.TrimSpace(value))
	}
	return headers, nil
}
