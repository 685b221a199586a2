package controller

import (
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// update applies changes to the store and builds the units that they touch.
func (c *Controller) update(changes []source.Change) {
	touched := map[store.Key]struct{}{}
	var keys []store.Key
	for _, change := range changes {
		for _, key := range c.store.Apply(change.Object, change.Deleted) {
			if _, ok := touched[key]; !ok {
				touched[key] = struct{}{}
				keys = append(keys, key)
			}
		}
	}
	c.build(keys)
}

// build builds units and asks for what comes of them.
func (c *Controller) build(keys []store.Key) {
	for _, key := range keys {
		switch key.Kind {
		case store.GlobalsUnit:
			globals, findings := c.builder.Globals(c.store)
			c.desired.SetGlobals(globals)
			c.shutdown.Store(int64(globals.Process.ShutdownTimeout))
			c.findings.set(key, findings)
		case store.HostUnit:
			host, found, findings := c.builder.Host(key.Name, c.store)
			if found {
				c.desired.SetHost(host)
			} else {
				c.desired.RemoveHost(key.Name)
			}
			c.findings.set(key, findings)
		case store.NameUnit:
			name, certificate, found, findings := c.builder.Name(key.Name, c.store)
			if found {
				c.desired.SetName(name, certificate)
			} else {
				c.desired.RemoveName(key.Name)
			}
			c.findings.set(key, findings)
		case store.BackendUnit:
			backend, found, findings := c.builder.Backend(key.Name, c.store)
			if found {
				c.desired.SetBackend(backend)
			} else {
				c.desired.RemoveBackend(key.Name)
			}
			c.findings.set(key, findings)
		}
		c.metrics.Builds.WithLabelValues(key.Kind.String()).Inc()
	}
	for _, kind := range []unit.Kind{unit.Host, unit.Name, unit.Backend, unit.Certificate} {
		c.metrics.Units.WithLabelValues(string(kind)).Set(float64(c.desired.Count(kind)))
	}
}
