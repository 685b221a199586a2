package controller

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

// noteConfigured notes that NGINX runs with c.static.
func (c *Controller) noteConfigured() {
	c.metrics.Generation.Set(float64(c.static.Generation))
	c.metrics.Profiles.Set(float64(len(c.static.Profiles) + 1))
	c.metrics.NginxConfBytes.Set(float64(len(c.static.Files[nginxconf.File])))
	c.settings.Families.Configured(c.static.Files)
}
