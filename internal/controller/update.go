package controller

import (
	"context"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/ledger"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// update applies changes to the store and builds the units that they touch.
func (c *Controller) update(ctx context.Context, changes []source.Change) {
	keys := c.applyToStore(changes)
	namesMost := namesInUpdate
	if time.Now().Before(c.namesAgain) {
		namesMost = 0
	}
	touched, waited := c.awaitWanted(ctx, secretsInUpdate, namesMost)
	if namesMost > 0 {
		c.namesAgain = time.Now().Add(namesApart * waited)
	}
	keys = append(keys, touched...)
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
		keys := c.store.Apply(change.Object, change.Deleted)
		if len(keys) > 0 && !change.Deleted {
			c.noticeTaken(change.Object)
		}
		touched = append(touched, keys...)
	}
	return touched
}

// tellSelected tells what became of Ingresses, whoever listens: the store keeps
// it until it is taken.
func (c *Controller) tellSelected() {
	selection := c.store.TakeIngresses()
	if c.settings.Selected != nil && len(selection.Put)+len(selection.Gone) > 0 {
		c.settings.Selected(selection)
	}
}

// noticeTaken tells of an object that changed, if it is an Ingress that is
// served.
func (c *Controller) noticeTaken(object metav1.Object) {
	if _, ok := object.(*networkingv1.Ingress); !ok || c.settings.Notices.Taken == nil {
		return
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if c.store.Serves(name) {
		c.settings.Notices.Taken(name)
	}
}

// How long what came to be referred to is waited for, at most, in all of an
// update.
//
// Whoever may write a Service can name DNS names whose servers are slow or
// silent, again and again, and every wait holds up the changes of others. So
// after a wait no name is waited for until namesApart times as long has
// passed: that is less than 1% of the time, whatever the servers do. Meanwhile
// new names are asked for all the same, and their backends have no endpoints
// until the answer comes. The usual change, one name that is answered within
// milliseconds, is waited for, and so loses no request. Secrets come from the
// API server, which no tenant can make slow, and without one a host would be
// served with a wrong certificate.
const (
	secretsAtStart  = 10 * time.Second
	secretsInUpdate = 250 * time.Millisecond
	namesAtStart    = 2 * time.Second
	namesInUpdate   = 100 * time.Millisecond
	namesApart      = 200
)

// awaitWanted waits for Secrets, ConfigMaps and addresses that came to be referred to, so
// that no host is served without a certificate that there is, and no backend
// without endpoints. What does not come in time is taken when it comes. It
// returns the units that this touches, and how long names were waited for.
//
// What comes may refer to more, and under a storm always does: that must not
// keep it beyond its time.
func (c *Controller) awaitWanted(ctx context.Context, secretsMost, namesMost time.Duration) (touched []store.Key, waited time.Duration) {
	forSecrets, cancelSecrets := context.WithTimeout(ctx, secretsMost)
	defer cancelSecrets()
	forNames, cancelNames := context.WithTimeout(ctx, namesMost)
	defer cancelNames()
	for {
		secrets := ask(c.settings.Want.Secrets, c.store.TakeSecrets())
		configMaps := ask(c.settings.Want.ConfigMaps, c.store.TakeConfigMaps())
		names := ask(c.settings.Want.Addresses, c.store.TakeNames())
		c.wantIssuers()
		came := await(forSecrets, secrets)
		came = await(forSecrets, configMaps) || came
		if names != nil {
			began := time.Now()
			came = await(forNames, names) || came
			waited += time.Since(began)
		}
		if !came {
			return touched, waited
		}
		var changes []source.Change
		changes, c.taken = c.queue.Collect(ctx)
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

// await tells whether something was delivered before ctx ended.
func await(ctx context.Context, delivered <-chan struct{}) bool {
	if delivered == nil || ctx.Err() != nil {
		return false
	}
	select {
	case <-delivered:
		return true
	case <-ctx.Done():
		return false
	}
}

// build builds units and asks for what comes of them.
func (c *Controller) build(keys []store.Key) {
	parts := make([]ledger.Part, 0, len(keys))
	buildOne := func(key store.Key) {
		parts = append(parts, ledger.Part{Owner: key, Findings: c.buildUnit(key)})
		c.metrics.Builds.WithLabelValues(key.Kind.String()).Inc()
	}
	for _, key := range keys {
		buildOne(key)
	}
	for _, host := range c.desired.Rebound() {
		buildOne(store.Key{Kind: store.HostUnit, Name: host})
	}
	c.settings.Ledger.Enter(parts)
	c.wantStaples()
	for _, kind := range []unit.Kind{unit.Host, unit.Name, unit.Backend, unit.Certificate, unit.Staple, unit.Content} {
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
			findings = append(findings, c.desired.SetHost(host)...)
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
		c.follow(key.Name, name, certificate)
		return findings
	case store.NamePatternsUnit:
		patterns, certificates, found, findings := c.builder.NamePatterns(c.store)
		if found {
			c.desired.SetNamePatterns(patterns, certificates)
		} else {
			c.desired.RemoveNamePatterns()
		}
		return findings
	case store.StapleUnit:
		staple, found, findings := c.builder.Staple(key.Name, c.store)
		if found {
			c.desired.SetStaple(staple)
		} else {
			c.desired.RemoveStaple(key.Name)
		}
		return findings
	case store.DefaultCertificateUnit:
		certificate, findings := c.builder.DefaultCertificate(c.store)
		c.settings.Expiry.Show(model.DefaultHost, certificate)
		if certificate == nil {
			certificate = &c.generated
		}
		c.desired.SetDefaultCertificate(*certificate)
		return findings
	case store.RefusalUnit:
		return c.builder.Refusal(key.Name, c.store)
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

// follow has the end of a rule's host's certificate followed. Its aliases show
// the same one, and the default certificate is a unit of its own.
func (c *Controller) follow(key string, name model.Name, certificate *model.Certificate) {
	if key == model.DefaultHost {
		return
	}
	if name.Name != name.Host {
		certificate = nil
	}
	c.settings.Expiry.Show(key, certificate)
}
