package metrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/observe/metrics"
)

// TestOfWorkers: a scrape asks NGINX once, and has nothing while NGINX is away.
func TestOfWorkers(t *testing.T) {
	asked := 0
	var problem error
	collector := metrics.OfWorkers(func(context.Context) (metrics.Workers, error) {
		asked++
		return metrics.Workers{
			Refusals:  map[string]map[string]int64{"regex": {"shop": 3}},
			Ejections: map[string]map[string]int64{"connect": {"shop": 1, "_others": 2}},
			Uncounted: map[string]map[string]int64{"requests": {"shop": 4}},
			Times:     map[string]map[string]float64{"regex": {"shop": 0.5}, "decoding": {"shop": 1}}, Retries: map[string]int64{"shop": 2, "team": 1},
		}, problem
	})
	want := `# HELP headgate_endpoint_ejections_total Number of times that a worker ejected an endpoint, by reason: connect (no connection could be made) or failures (requests failed in a row). The first 100 namespaces are counted by name, others as _others.
# TYPE headgate_endpoint_ejections_total counter
headgate_endpoint_ejections_total{namespace="_others",reason="connect"} 2
headgate_endpoint_ejections_total{namespace="shop",reason="connect"} 1
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want), "headgate_endpoint_ejections_total"); err != nil {
		t.Error(err)
	}
	if asked != 1 {
		t.Errorf("a scrape asked %d times", asked)
	}
	if n := testutil.CollectAndCount(collector, "headgate_refusals_total"); n != 1 {
		t.Errorf("%d series of refusals", n)
	}
	if n := testutil.CollectAndCount(collector, "headgate_unlimited_requests_total"); n != 1 {
		t.Errorf("%d series of requests that limits did not count", n)
	}
	for _, name := range []string{"headgate_worker_seconds_total", "headgate_retries_total"} {
		if n := testutil.CollectAndCount(collector, name); n != 2 {
			t.Errorf("%d series of %s", n, name)
		}
	}
	problem = errors.New("NGINX is away")
	if n := testutil.CollectAndCount(collector); n != 0 {
		t.Errorf("%d series without NGINX", n)
	}
}
