// Package dataplane is the client of the data plane's API, which
// docs/data-plane-api.md describes: it writes units into NGINX's shared memory
// and reads back what is there.
//
// It knows frames and answers. It does not know what units mean, nor when
// NGINX is reloaded.
package dataplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// The kinds of failure that a caller may want to tell apart. A *RefusedError
// is another.
var (
	// ErrElsewhere: only workers of another generation or dictionary, or ones
	// that are shutting down, answered.
	ErrElsewhere = errors.New("the worker has another generation or dictionary")
	// ErrFull: the units of the frame do not fit the shared memory. Nothing of
	// the frame was written.
	ErrFull = errors.New("the shared memory is full")
	// ErrNotFound: there is no such unit.
	ErrNotFound = errors.New("no such unit")
	// ErrUnreachable: NGINX did not answer, or not in time.
	ErrUnreachable = errors.New("the data plane does not answer")
)

// A RefusedError is an answer that says that the request was wrong.
type RefusedError struct {
	// Status is the HTTP status.
	Status int
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the data plane refused (%d): %s", e.Status, e.Reason)
}

const (
	// requestTimeout bounds one request. A frame takes a few milliseconds.
	requestTimeout = 5 * time.Second
	// maxAnswer bounds an answer in bytes. The largest one is a whole unit.
	maxAnswer = 64 << 20
	maxIdle   = 2
)

// A Client talks to one NGINX. Its methods may be called at the same time from
// several goroutines.
type Client struct {
	transport *http.Transport
	http      *http.Client
}

// New returns a client of the API behind a unix socket. It connects when it is
// first used.
func New(socket string) *Client {
	dialer := &net.Dialer{}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
	}
	return &Client{transport: transport, http: &http.Client{Transport: transport}}
}

// CloseIdle closes idle connections, so that the next request reaches a worker
// that accepts connections now. It is called before and after a reload.
func (c *Client) CloseIdle() { c.transport.CloseIdleConnections() }

// do sends one request and decodes its answer into answer.
func (c *Client) do(ctx context.Context, method, path string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	target := url.URL{Scheme: "http", Host: "headgate", Path: path}
	var content io.Reader = http.NoBody
	if body != nil {
		content = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	// Every request of this API may be sent twice, so the transport may try a
	// new connection when an idle one turns out to be closed. The empty list
	// says so without a header on the wire.
	request.Header["Idempotency-Key"] = []string{}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer response.Body.Close()
	// Read to its end, so that the connection is idle when this returns.
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response.StatusCode, read)
	}
	if err := json.Unmarshal(read, answer); err != nil {
		return fmt.Errorf("the data plane's answer to %s %s: %w", method, path, err)
	}
	return nil
}

func refusal(status int, content []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(content, &answer); err != nil || answer.Error == "" {
		answer.Error = http.StatusText(status)
	}
	switch status {
	case http.StatusConflict:
		return fmt.Errorf("%w: %s", ErrElsewhere, answer.Error)
	case http.StatusInsufficientStorage:
		return fmt.Errorf("%w: %s", ErrFull, answer.Error)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, answer.Error)
	}
	return &RefusedError{Status: status, Reason: answer.Error}
}
