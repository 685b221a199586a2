package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/headgate/headgate/internal/explain"
)

// askController queries the controller on a socket.
func askController(ctx context.Context, socket string, q explain.Query) (explain.Explanation, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	wanted := url.Values{"url": {q.URL}, "method": {q.Method}, "header": q.Headers}
	if q.From != "" {
		wanted.Set("from", q.From)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://controller/v1/explain?"+wanted.Encode(), http.NoBody)
	if err != nil {
		return explain.Explanation{}, fmt.Errorf("query the controller: %w", err)
	}
	response, err := transport.RoundTrip(request)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return explain.Explanation{}, fmt.Errorf("no controller listens on %s: set --run-dir or the ports, "+
			"or explain manifests (-f) or a cluster (--kubeconfig)", socket)
	case err != nil:
		return explain.Explanation{}, fmt.Errorf("query the controller: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		explain.Explanation
		Error string `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return explain.Explanation{}, fmt.Errorf("read the controller's response: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return explain.Explanation{}, fmt.Errorf("the controller: %s", answer.Error)
	}
	return answer.Explanation, nil
}
