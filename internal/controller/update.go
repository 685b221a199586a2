package controller

import (
	"context"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/tracker"
	"github.com/headgate/headgate/internal/unit"
)

// update applies changes to the store and builds the units that they affect.
func (c *Controller) update(ctx context.Context, changes []source.Change) {
	keys := c.applyToStore(changes)
	maxNameWait := namesInUpdate
	if time.Now().Before(c.nameWaitAllowed) {
		maxNameWait = 0
	}
	touched, waited := c.awaitReferences(ctx, secretsInUpdate, maxNameWait)
	if maxNameWait > 0 {
		c.nameWaitAllowed = time.Now().Add(nameWaitRatio * waited)
	}
	keys = append(keys, touched...)
	slices.SortFunc(keys, unit.Key.Compare)
	c.build(slices.Compact(keys))
}

// applyToStore returns the units that changes affect, some of them more than
// once.
func (c *Controller) applyToStore(changes []source.Change) []unit.Key {
	var touched []unit.Key
	for _, change := range changes {
		keys := c.store.Apply(change.Object, change.Deleted)
		if len(keys) > 0 && !change.Deleted {
			c.noticeServed(change.Object)
		}
		touched = append(touched, keys...)
	}
	return touched
}

// publishSelection passes on which Ingresses are served. The store keeps that
// until it is taken.
func (c *Controller) publishSelection() {
	selection := c.store.DrainIngresses()
	if c.settings.Selected != nil && len(selection.Put)+len(selection.Gone) > 0 {
		c.settings.Selected(selection)
	}
}

// noticeServed reports an object that changed, if it is an Ingress that is
// served.
func (c *Controller) noticeServed(object metav1.Object) {
	if _, ok := object.(*networkingv1.Ingress); !ok || c.settings.Notices.Served == nil {
		return
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if c.store.Serves(name) {
		c.settings.Notices.Served(name)
	}
}

// How long an update waits at most for objects that it newly refers to.
//
// Anyone with write access to Services can name DNS names with slow servers,
// again and again, and each wait delays the changes of others. So after a wait,
// updates don't wait for names until nameWaitRatio times as long has passed, which
// is less than 1% of the time. New names are looked up nevertheless, and their
// backends have no endpoints until then. A single name that is resolved within
// milliseconds is waited for, so it loses no request. Secrets come from the API
// server, which tenants can't slow down, and without them certificates are wrong.
const (
	secretsAtStart  = 10 * time.Second
	secretsInUpdate = 250 * time.Millisecond
	namesAtStart    = 2 * time.Second
	namesInUpdate   = 100 * time.Millisecond
	nameWaitRatio   = 200
)

// awaitReferences waits for Secrets, ConfigMaps and addresses with new
// references, so that no host is served without a certificate that exists, and no
// backend without its endpoints. Anything that arrives later is another change.
// It returns the units affected, and how long it waited for names.
//
// Objects that arrive may refer to more objects, again and again. The maximum
// times hold for all of them together.
func (c *Controller) awaitReferences(ctx context.Context, maxSecretWait, maxNameWait time.Duration) (touched []unit.Key, waited time.Duration) {
	forSecrets, cancelSecrets := context.WithTimeout(ctx, maxSecretWait)
	defer cancelSecrets()
	forNames, cancelNames := context.WithTimeout(ctx, maxNameWait)
	defer cancelNames()
	for {
		secrets := subscribe(c.settings.Subscriptions.Secrets, c.store.DrainSecrets())
		configMaps := subscribe(c.settings.Subscriptions.ConfigMaps, c.store.DrainConfigMaps())
		names := subscribe(c.settings.Subscriptions.Addresses, c.store.DrainNames())
		// Authorities are not waited for: see subscribeOCSPResponses.
		subscribe(c.settings.Subscriptions.Issuers, c.store.DrainIssuers())
		delivered := await(forSecrets, secrets)
		delivered = await(forSecrets, configMaps) || delivered
		if names != nil {
			began := time.Now()
			delivered = await(forNames, names) || delivered
			waited += time.Since(began)
		}
		if !delivered {
			return touched, waited
		}
		var changes []source.Change
		changes, c.taken = c.queue.Collect(ctx)
		touched = append(touched, c.applyToStore(changes)...)
	}
}

// subscribe returns nil if there is nothing to wait for.
func subscribe[Name any](want Subscribe[Name], r store.References[Name]) (delivered <-chan struct{}) {
	if want != nil && len(r.Added)+len(r.Removed) > 0 {
		delivered = want(r.Added, r.Removed)
	}
	if len(r.Added) == 0 {
		return nil
	}
	return delivered
}

// await reports whether something was delivered before ctx ended.
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

// build builds units and subscribes to what they refer to.
func (c *Controller) build(keys []unit.Key) {
	parts := make([]tracker.Part, 0, len(keys))
	buildOne := func(key unit.Key) {
		parts = append(parts, tracker.Part{Owner: key, Findings: c.buildUnit(key)})
		c.metrics.Builds.WithLabelValues(string(key.Kind)).Inc()
	}
	for _, key := range keys {
		buildOne(key)
	}
	for _, host := range c.desired.Rebound() {
		buildOne(unit.Host.Key(host))
	}
	c.settings.Tracker.Update(parts)
	c.subscribeOCSPResponses()
	for _, of := range unit.Kinds() {
		if of.Pushed() && of.Only == "" {
			c.metrics.Units.WithLabelValues(string(of.Kind)).Set(float64(c.desired.Count(of.Kind)))
		}
	}
}

// buildUnit builds a unit and records it as desired, with what follows from it.
func (c *Controller) buildUnit(key unit.Key) []finding.Finding {
	built, findings := c.builder.Unit(key, c.store)
	switch key.Kind {
	case unit.Globals:
		globals, _ := built.Model.(model.Globals)
		c.limits = limitsOf(globals.Process)
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

// followExpiry follows the expiry of the certificate of a rule's host. Its
// aliases show the same one, and the default certificate is a unit of its own.
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

// subscribeOCSPResponses does not wait for certificate authorities: anyone with
// write access to Secrets decides which authority is contacted. Without its
// response, the certificate is served as it is in the Secret.
func (c *Controller) subscribeOCSPResponses() {
	want := c.settings.Subscriptions.OCSPResponses
	if want == nil {
		return
	}
	added, removed := c.desired.DrainOCSPChanges()
	if len(added)+len(removed) == 0 {
		return
	}
	subjects := make([]source.Subject, len(added))
	for i, certificate := range added {
		subjects[i] = source.Subject{Name: certificate.Hash, Chain: certificate.Chain, Secret: certificate.Secret}
	}
	want(subjects, removed)
}
