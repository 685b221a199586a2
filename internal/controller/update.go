package controller

import (
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// update applies changes to the store and builds the units that they touch.
func (c *Controller) update(ctx context.Context, changes []source.Change) {
	keys := c.applyToStore(changes)
	keys = append(keys, c.awaitSecrets(ctx, secretsInUpdate)...)
	built := make(map[store.Key]struct{}, len(keys))
	c.build(slices.DeleteFunc(keys, func(key store.Key) bool {
		_, ok := built[key]
		built[key] = struct{}{}
		return ok
	}))
}

// applyToStore returns the units that changes touch, some of them several
// times.
func (c *Controller) applyToStore(changes []source.Change) []store.Key {
	var touched []store.Key
	for _, change := range changes {
		touched = append(touched, c.store.Apply(change.Object, change.Deleted)...)
	}
	return touched
}

// How long Secrets that came to be referred to are waited for.
const (
	secretsAtStart  = 10 * time.Second
	secretsInUpdate = 250 * time.Millisecond
)

// awaitSecrets waits for Secrets that came to be referred to, so that no host
// is served without a certificate that there is. What does not come in time is
// taken when it comes. It returns the units that this touches.
func (c *Controller) awaitSecrets(ctx context.Context, most time.Duration) []store.Key {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var touched []store.Key
	for {
		added, removed := c.store.TakeReferences()
		if c.settings.Want == nil || len(added)+len(removed) == 0 {
			return touched
		}
		delivered := c.settings.Want(added, removed)
		if len(added) == 0 {
			return touched
		}
		select {
		case <-delivered:
		case <-ctx.Done():
			return touched
		}
		var changes []source.Change
		changes, c.taken = c.inbox.take(ctx)
		touched = append(touched, c.applyToStore(changes)...)
	}
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
		case store.NamePatternsUnit:
			patterns, certificates, found, findings := c.builder.NamePatterns(c.store)
			if found {
				c.desired.SetNamePatterns(patterns, certificates)
			} else {
				c.desired.RemoveNamePatterns()
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
