package controller

import (
	"context"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/metrics"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
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
	c.metrics.NginxConfBytes.Set(float64(len(c.static.Files[plan.NginxConf])))
	c.settings.Families.Configured(c.static.Files)
}

// noteSelection notes which Ingresses are served, with the backends that they name.
func (c *Controller) noteSelection(selection store.Selection) {
	f := c.settings.Families
	if f == nil {
		return
	}
	for _, ing := range selection.Put {
		var backends []string
		for _, ref := range c.store.References(ing).Backends {
			backends = append(backends, ref.Key)
		}
		f.Serve(ing.Namespace, ing.Name, backends)
	}
	for _, name := range selection.Gone {
		f.Remove(name.Namespace, name.Name)
	}
}

// noteBackend notes what the backend of a Service lacks to answer.
func (c *Controller) noteBackend(built unit.Built) {
	if c.settings.Families == nil {
		return
	}
	backend, found := built.Model.(model.Backend)
	service, _, ok := spec.SplitKey(built.Name)
	lacks := metrics.None
	switch {
	case !found || !ok || service.Namespace == model.NoNamespace:
	case c.store.Service(service) == nil:
		lacks = metrics.NoService
	case len(backend.Endpoints) == 0:
		lacks = metrics.NoEndpoint
	}
	c.settings.Families.Backend(built.Name, lacks)
}
