package edge

import (
	"context"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// registerNGINX registers the metrics that NGINX is asked for at each scrape.
func registerNGINX(s Settings, client *dataplane.Client) {
	s.Metrics.Registry.MustRegister(metrics.OfWorkers(func(ctx context.Context) (metrics.Workers, error) {
		state, err := client.State(ctx)
		return metrics.Workers{Refusals: state.Refusals, Ejections: state.Ejections, Uncounted: state.Uncounted, Times: state.Times, Retries: state.Retries}, err
	}))
	err := s.Families.NGINX(s.Process.PID, func(ctx context.Context) (metrics.Connections, error) {
		n, err := client.Connections(ctx)
		return metrics.Connections(n), err
	})
	if err != nil {
		s.Log.Warn("there are no metrics of NGINX's processes", "error", err)
	}
}

// noteConfigured notes that NGINX runs with e.static.
func (e *Edge) noteConfigured() {
	e.settings.Metrics.Generation.Set(float64(e.static.Generation))
	e.settings.Metrics.Profiles.Set(float64(len(e.static.Profiles) + 1))
	e.settings.Metrics.NginxConfBytes.Set(float64(len(e.static.Files[nginxconf.File])))
	e.settings.Families.Configured(e.static.Files)
}
