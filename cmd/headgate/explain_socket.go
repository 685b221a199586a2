package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/headgate/headgate/internal/explain"
)

// explainRunning queries the controller on a socket.
func explainRunning(ctx context.Context, socket string, q explain.Query) (explanation explain.Explanation, err error) {
	wanted := url.Values{"url": {q.URL}, "method": {q.Method}, "header": q.Headers}
	if q.From != "" {
		wanted.Set("from", q.From)
	}
	err = askController(ctx, socket, "/v1/explain", wanted, &explanation)
	if errors.Is(err, errNotListening) {
		err = fmt.Errorf("%w: set --run-dir or the ports, or explain manifests (-f) or a cluster (--kubeconfig)", err)
	}
	return explanation, err
}
