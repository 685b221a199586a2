package controller

import (
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

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
