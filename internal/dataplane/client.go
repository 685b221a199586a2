// Package dataplane is the client of the data plane's API, which
// docs/data-plane-api.md describes: it writes units into NGINX's shared memory
// and reads back what is there.
//
// It knows frames and responses. It does not know what units mean, nor when
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

// The kinds of failure that a caller may need to distinguish.
var (
	// ErrElsewhere: only workers of another generation or dictionary, or workers
	// that are shutting down, responded.
	ErrElsewhere = errors.New("the worker has another generation or dictionary")
	// ErrFull: the units of the frame do not fit into the shared memory. Nothing
	// of the frame was written.
	ErrFull = errors.New("the shared memory is full")
	// ErrNotFound: there is no such unit.
	ErrNotFound = errors.New("no such unit")
	// ErrUnreachable: NGINX did not respond, or not in time.
	ErrUnreachable = errors.New("the data plane does not respond")
)

const (
	// requestTimeout limits one request. A frame takes a few milliseconds.
	requestTimeout = 5 * time.Second
	// maxAnswer limits the size of a response in bytes. The largest one is a whole unit.
	maxAnswer = 64 << 20
	maxIdle   = 2
)

// A Client is a client of one NGINX. Several goroutines may use it at the same
// time.
type Client struct{ http http.Client }

// New returns a client of the API on a unix socket. It connects when it is first
// used.
func New(socket string) *Client {
	dialer := &net.Dialer{}
	return &Client{http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
	}}}
}

// CloseIdle closes idle connections, so that the next request reaches a worker
// that accepts connections now. It is called before and after a reload.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// do sends one request and decodes its response into answer.
func (c *Client) do(ctx context.Context, method, path string, body []byte, answer any) error {
	read, err := c.fetch(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(read, answer); err != nil {
		return fmt.Errorf("decoding the data plane's response to %s %s: %w", method, path, err)
	}
	return nil
}

// fetch sends one request and returns the body of its response.
func (c *Client) fetch(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	target := url.URL{Scheme: "http", Host: "headgate", Path: path}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	// Every request of this API may be sent twice, so the transport may try a new
	// connection if an idle one is closed. The empty list allows that without a
	// header in the request.
	request.Header["Idempotency-Key"] = []string{}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer response.Body.Close()
	// Read to its end, so that the connection is idle when this returns.
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s: %w", ErrUnreachable, method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response.StatusCode, read)
	}
	return read, nil
}

func refusal(status int, content []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(content, &answer); err != nil || answer.Error == "" {
		answer.Error = http.StatusText(status)
	}
	kinds := map[int]error{http.StatusConflict: ErrElsewhere, http.StatusInsufficientStorage: ErrFull, http.StatusNotFound: ErrNotFound}
	if kind := kinds[status]; kind != nil {
		return fmt.Errorf("%w: %s", kind, answer.Error)
	}
	return fmt.Errorf("the data plane rejected the request (%d): %s", status, answer.Error)
}
