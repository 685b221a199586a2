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
	built := make(map[unit.Key]struct{}, len(keys))
	c.build(slices.DeleteFunc(keys, func(key unit.Key) bool {
		_, ok := built[key]
		built[key] = struct{}{}
		return ok
	}))
}

// applyToStore returns the units that changes touch, some of them several
// times.
func (c *Controller) applyToStore(changes []source.Change) []unit.Key {
	var touched []unit.Key
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
	selection := c.store.DrainIngresses()
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
func (c *Controller) awaitWanted(ctx context.Context, secretsMost, namesMost time.Duration) (touched []unit.Key, waited time.Duration) {
	forSecrets, cancelSecrets := context.WithTimeout(ctx, secretsMost)
	defer cancelSecrets()
	forNames, cancelNames := context.WithTimeout(ctx, namesMost)
	defer cancelNames()
	for {
		secrets := ask(c.settings.Want.Secrets, c.store.DrainSecrets())
		configMaps := ask(c.settings.Want.ConfigMaps, c.store.DrainConfigMaps())
		names := ask(c.settings.Want.Addresses, c.store.DrainNames())
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
func (c *Controller) build(keys []unit.Key) {
	parts := make([]ledger.Part, 0, len(keys))
	buildOne := func(key unit.Key) {
		parts = append(parts, ledger.Part{Owner: key, Findings: c.buildUnit(key)})
		c.metrics.Builds.WithLabelValues(string(key.Kind)).Inc()
	}
	for _, key := range keys {
		buildOne(key)
	}
	for _, host := range c.desired.Rebound() {
		buildOne(unit.Host.Key(host))
	}
	c.settings.Ledger.Enter(parts)
	c.wantStaples()
	for _, of := range unit.Kinds() {
		if of.Pushed() && of.Only == "" {
			c.metrics.Units.WithLabelValues(string(of.Kind)).Set(float64(c.desired.Count(of.Kind)))
		}
	}
}

// buildUnit builds a unit, and asks for it. What else follows from it is here.
func (c *Controller) buildUnit(key unit.Key) []finding.Finding {
	built, findings := c.builder.Unit(key, c.store)
	switch key.Kind {
	case unit.Globals:
		globals, _ := built.Model.(model.Globals)
		c.shutdown.Store(int64(globals.Process.ShutdownTimeout))
	case unit.Name:
		c.followExpiry(built)
	case unit.DefaultCertificate:
		certificate, found := built.Model.(model.Certificate)
		if !found {
			c.settings.Expiry.Show(model.DefaultHost, nil)
			built.Model = c.generated
			break
		}
		c.settings.Expiry.Show(model.DefaultHost, &certificate)
	}
	return append(findings, c.desired.Set(built)...)
}

// followExpiry has the end of a rule's host's certificate followed. Its aliases
// show the same one, and the default certificate is a unit of its own.
func (c *Controller) followExpiry(built unit.Built) {
	if built.Name == model.DefaultHost {
		return
	}
	var certificate *model.Certificate
	if name, _ := built.Model.(model.Name); name.Name == name.Host && len(built.Certificates) > 0 {
		certificate = &built.Certificates[0]
	}
	c.settings.Expiry.Show(built.Name, certificate)
}
