package instance

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
)

// Explain has the controller with a run directory explain a request.
func Explain(ctx context.Context, dir string, q explain.Query) (explanation report.Explanation, err error) {
	wanted := url.Values{"url": {q.URL}, "method": {q.Method}, "header": q.Headers}
	if q.From != "" {
		wanted.Set("from", q.From)
	}
	err = Ask(ctx, dir, "/v1/explain", wanted, &explanation)
	if errors.Is(err, errNotListening) {
		err = fmt.Errorf("%w: set --run-dir or the ports, or explain manifests (-f) or a cluster (--kubeconfig)", err)
	}
	return explanation, err
}
