package check

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
	"time"
)

const (
	// maxHeader and maxBody bound what is read of an answer.
	maxHeader = 16 << 10
	maxBody   = 10 << 10
	// agent is the User-Agent of checks.
	agent = "headgate-health-check"
)

// A prober sends the requests. Each has a connection of its own.
type prober struct{ http1, http2 *http.Transport }

func newProber() *prober {
	transport := func(version func(*http.Protocols)) *http.Transport {
		protocols := &http.Protocols{}
		version(protocols)
		return &http.Transport{
			DialContext:            dial,
			Protocols:              protocols,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
			// Pods have certificates of their own making, as for the probes of a kubelet. A
			// check sends nothing that is secret.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}
	}
	return &prober{
		http1: transport(func(p *http.Protocols) { p.SetHTTP1(true) }),
		http2: transport(func(p *http.Protocols) { p.SetHTTP2(true); p.SetUnencryptedHTTP2(true) }),
	}
}

// A destination is where the connection of a request goes, and not to the host of its URL. It is
// a value of the request's context.
type destination struct {
	address  netip.AddrPort
	deadline time.Time
}

type destinationKey struct{}

func dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to := ctx.Value(destinationKey{}).(destination)
	conn, err := (&net.Dialer{Deadline: to.deadline, KeepAlive: -1}).DialContext(ctx, "tcp", to.address.String())
	if err != nil {
		return nil, err
	}
	// Nothing outlives the check, not even what the transport does by itself.
	return conn, conn.SetDeadline(to.deadline)
}

// probe makes one check. Its error says what is wrong, always in the same words.
func (p *prober) probe(ctx context.Context, t *target) error {
	deadline := time.Now().Add(t.check.Timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	address := t.endpoint
	if t.check.Port != 0 {
		address = netip.AddrPortFrom(address.Addr(), t.check.Port)
	}
	ctx = context.WithValue(ctx, destinationKey{}, destination{address, deadline})
	at := &url.URL{Scheme: "http", Host: cmp.Or(t.check.Host, address.String())}
	if t.check.TLS {
		at.Scheme = "https"
	}
	title, ask := "GET "+t.check.Target, p.get
	if t.check.GRPC {
		title, ask = "gRPC health", p.askGRPC
		if t.check.Target != "" {
			title += " of " + t.check.Target
		}
	}
	if err := ask(ctx, at, t.check.Target); err != nil {
		return fmt.Errorf("%s: %s", title, describe(err, t.check.Timeout))
	}
	return nil
}

// get wants a status from 200 to 399.
func (p *prober) get(ctx context.Context, at *url.URL, path string) error {
	// Two slashes at the beginning are part of the path.
	uri, err := url.ParseRequestURI(path)
	if err != nil {
		return err
	}
	at.Path, at.RawPath, at.RawQuery = uri.Path, uri.RawPath, uri.RawQuery
	response, err := p.do(ctx, p.http1, http.MethodGet, at, nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		err = refusal(fmt.Sprintf("status %d", response.StatusCode))
	}
	// A server that is cut off in its answer may log an error. What it says does not matter.
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	return err
}

func (p *prober) do(ctx context.Context, by *http.Transport, method string, at *url.URL, header http.Header, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("User-Agent", agent)
	return by.RoundTrip(request)
}

// A refusal is an answer that is not a healthy one's.
type refusal string

func (r refusal) Error() string { return string(r) }

// describe says what is wrong without what differs from one check to the next.
func describe(err error, timeout time.Duration) string {
	refused, answers := errors.AsType[refusal](err)
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if netErr, ok := errors.AsType[net.Error](err); ok && netErr.Timeout() {
		timedOut = true
	}
	switch {
	case answers:
		return string(refused)
	case timedOut:
		return fmt.Sprintf("no answer within %v", timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the endpoint"
	case errors.Is(err, http.ErrSchemeMismatch), isTLSError(err):
		return "the TLS handshake failed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed without an answer"
	}
	return "the answer can't be read"
}

func isTLSError(err error) bool {
	_, isAlert := errors.AsType[tls.AlertError](err)
	_, isOther := errors.AsType[tls.RecordHeaderError](err)
	return isAlert || isOther
}
