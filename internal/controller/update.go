package controller

import (
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/ledger"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// update applies changes to the store and builds the units that they touch.
func (c *Controller) update(ctx context.Context, changes []source.Change) {
	keys := c.applyToStore(changes)
	keys = append(keys, c.awaitWanted(ctx, secretsInUpdate, namesInUpdate)...)
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

// How long what came to be referred to is waited for. A name that nobody
// answers for must not hold up the changes of others.
const (
	secretsAtStart  = 10 * time.Second
	secretsInUpdate = 250 * time.Millisecond
	namesAtStart    = 2 * time.Second
	namesInUpdate   = 100 * time.Millisecond
)

// awaitWanted waits for Secrets and addresses that came to be referred to, so
// that no host is served without a certificate that there is, and no backend
// without endpoints. What does not come in time is taken when it comes. It
// returns the units that this touches.
func (c *Controller) awaitWanted(ctx context.Context, secretsMost, namesMost time.Duration) []store.Key {
	forSecrets, cancelSecrets := context.WithTimeout(ctx, secretsMost)
	defer cancelSecrets()
	forNames, cancelNames := context.WithTimeout(ctx, namesMost)
	defer cancelNames()
	var touched []store.Key
	for {
		secrets := ask(c.settings.Want.Secrets, c.store.TakeSecrets())
		names := ask(c.settings.Want.Addresses, c.store.TakeNames())
		if secrets == nil && names == nil {
			return touched
		}
		await(forSecrets, secrets)
		await(forNames, names)
		var changes []source.Change
		changes, c.taken = c.inbox.take(ctx)
		touched = append(touched, c.applyToStore(changes)...)
	}
}

// ask returns nil if there is nothing to wait for.
func ask[Name any](want Want[Name], r store.References[Name]) (delivered <-chan struct{}) {
	if want == nil || len(r.Added)+len(r.Removed) == 0 {
		return nil
	}
	delivered = want(r.Added, r.Removed)
	if len(r.Added) == 0 {
		return nil
	}
	return delivered
}

func await(ctx context.Context, delivered <-chan struct{}) {
	if delivered == nil {
		return
	}
	select {
	case <-delivered:
	case <-ctx.Done():
	}
}

// build builds units and asks for what comes of them.
func (c *Controller) build(keys []store.Key) {
	parts := make([]ledger.Part, len(keys))
	for i, key := range keys {
		parts[i] = ledger.Part{Owner: key, Findings: c.buildUnit(key)}
		c.metrics.Builds.WithLabelValues(key.Kind.String()).Inc()
	}
	c.settings.Ledger.Enter(parts)
	for _, kind := range []unit.Kind{unit.Host, unit.Name, unit.Backend, unit.Certificate} {
		c.metrics.Units.WithLabelValues(string(kind)).Set(float64(c.desired.Count(kind)))
	}
}

func (c *Controller) buildUnit(key store.Key) []finding.Finding {
	switch key.Kind {
	case store.GlobalsUnit:
		globals, findings := c.builder.Globals(c.store)
		c.desired.SetGlobals(globals)
		c.shutdown.Store(int64(globals.Process.ShutdownTimeout))
		return findings
	case store.HostUnit:
		host, found, findings := c.builder.Host(key.Name, c.store)
		if found {
			c.desired.SetHost(host)
		} else {
			c.desired.RemoveHost(key.Name)
		}
		return findings
	case store.NameUnit:
		name, certificate, found, findings := c.builder.Name(key.Name, c.store)
		if found {
			c.desired.SetName(name, certificate)
		} else {
			c.desired.RemoveName(key.Name)
		}
		return findings
	case store.NamePatternsUnit:
		patterns, certificates, found, findings := c.builder.NamePatterns(c.store)
		if found {
			c.desired.SetNamePatterns(patterns, certificates)
		} else {
			c.desired.RemoveNamePatterns()
		}
		return findings
	case store.BackendUnit:
		backend, found, findings := c.builder.Backend(key.Name, c.store)
		if found {
			c.desired.SetBackend(backend)
		} else {
			c.desired.RemoveBackend(key.Name)
		}
		return findings
	}
	return nil
}
