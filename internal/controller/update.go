package controller

import (
	"context"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/controller/backlog"
	"github.com/headgate/headgate/internal/controller/trial"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// A touched unit is affected by a change of an object in a namespace, empty for none.
type touched struct {
	key       unit.Key
	namespace string
	// resolved is set where the object is a DNS name.
	resolved bool
}

// update applies changes to the store and builds the units that they affect: hosts as far
// as their turn goes. If the globals are among them, an administrator changed the options:
// then all of them are built at once, and hosts don't differ from globals.
func (c *Controller) update(ctx context.Context, changes []source.Change) {
	list := c.applyToStore(changes)
	maxNameWait := namesInUpdate
	if time.Now().Before(c.nameWaitAllowed) {
		maxNameWait = 0
	}
	more, waited := c.awaitReferences(ctx, secretsInUpdate, maxNameWait)
	if maxNameWait > 0 {
		c.nameWaitAllowed = time.Now().Add(nameWaitRatio * waited)
	}
	list = append(list, more...)
	now := time.Now()
	var keys []unit.Key
	atOnce := slices.ContainsFunc(list, func(t touched) bool { return t.key == unit.GlobalsKey })
	for _, t := range list {
		if t.key.Kind == unit.Host && !atOnce {
			c.backlog.Add(t.key.Name, t.namespace, now)
			c.edge.Expect(t.key.Name)
		}
	}
	for _, t := range list {
		host, called := calledHost(t.key)
		switch {
		case atOnce, t.key.Kind != unit.Host && (!called || t.resolved || !c.backlog.Waits(host)):
			keys = append(keys, t.key)
		case called:
			c.withHosts[host] = append(c.withHosts[host], t.key)
		}
	}
	slices.SortFunc(keys, unit.Key.Compare)
	keys = slices.Compact(keys)
	if atOnce {
		c.buildAll(keys)
	} else {
		c.build(keys)
	}
}

// calledHost is the name that a backend without a Service is for. If it is a host's, whether
// the backend is needed depends on the routes of the host: until these are built, their last
// version may call it.
func calledHost(key unit.Key) (host string, ok bool) {
	service, _, ok := spec.SplitKey(key.Name)
	return service.Name, ok && key.Kind == unit.Backend && service.Namespace == model.NoNamespace
}

// applyToStore returns the units that changes affect, some of them more than
// once.
func (c *Controller) applyToStore(changes []source.Change) []touched {
	var list []touched
	for _, change := range changes {
		keys := c.store.Apply(change.Object, change.Deleted)
		if len(keys) > 0 && !change.Deleted {
			c.noticeServed(change.Object)
		}
		if len(keys) > 0 {
			c.noteArrival(change)
		}
		_, resolved := change.Object.(*source.Addresses)
		for _, key := range keys {
			list = append(list, touched{key, change.Object.GetNamespace(), resolved})
		}
	}
	return list
}

// publishSelection passes on which Ingresses are served. The store keeps that
// until it is taken.
func (c *Controller) publishSelection() {
	selection := c.store.DrainIngresses()
	c.noteSelection(selection)
	if c.settings.Selected != nil && len(selection.Put)+len(selection.Gone) > 0 {
		c.settings.Selected(selection)
	}
}

// noticeServed reports an object that changed, if it is an Ingress that is
// served.
func (c *Controller) noticeServed(object metav1.Object) {
	if _, ok := object.(*networkingv1.Ingress); !ok || c.settings.Served == nil {
		return
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if c.store.Serves(name) {
		c.settings.Served(name)
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
func (c *Controller) awaitReferences(ctx context.Context, maxSecretWait, maxNameWait time.Duration) (list []touched, waited time.Duration) {
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
			return list, waited
		}
		var changes []source.Change
		changes, c.taken = c.queue.Collect(ctx)
		list = append(list, c.applyToStore(changes)...)
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

// buildAll builds units, and hosts whose profiles change because of them.
func (c *Controller) buildAll(keys []unit.Key) {
	var parts []tracker.Part
	c.trials.Begin(trial.AtOnce)
	for _, key := range keys {
		parts = c.buildOne(parts, key, "")
	}
	c.finishBuild(parts)
	front{c}.Rebuild(c.edge.Rebound())
}

// build builds units, and hosts of the backlog for the time of a turn.
func (c *Controller) build(keys []unit.Key) {
	var parts []tracker.Part
	c.trials.Begin(trial.InTurn)
	for _, key := range keys {
		parts = c.buildOne(parts, key, "")
	}
	began := time.Now()
	for now := began; now.Sub(began) < backlog.Turn; now = time.Now() {
		host, namespace, ok := c.backlog.Next(now)
		if !ok {
			break
		}
		parts = c.buildOne(parts, unit.Host.Key(host), namespace)
	}
	c.finishBuild(parts)
}

// finishBuild publishes what was built.
func (c *Controller) finishBuild(parts []tracker.Part) {
	c.settings.Tracker.Update(parts)
	c.subscribeOCSPResponses()
	for _, of := range unit.Kinds() {
		if of.Pushed() && of.Only == "" {
			c.metrics.Units.WithLabelValues(string(of.Kind)).Set(float64(c.edge.Count(of.Kind)))
		}
	}
	c.metrics.HostsToBuild.Set(float64(c.backlog.Size()))
	c.turn = nil
	if at, ok := c.backlog.Due(time.Now()); ok {
		c.turn = time.After(time.Until(at))
	}
}

// buildOne builds a unit, in the turn of a namespace, and what waits for it.
func (c *Controller) buildOne(parts []tracker.Part, key unit.Key, namespace string) []tracker.Part {
	c.metrics.Builds.WithLabelValues(string(key.Kind)).Inc()
	if key.Kind != unit.Host {
		parts = append(parts, tracker.Part{Owner: key, Findings: c.buildUnit(key)})
		c.trials.Built(key, "")
		return parts
	}
	// The processor time of this thread is the host's own, and so is the time of its trials in
	// another process; others make the rest of the time.
	runtime.LockOSThread()
	began := threadTime()
	parts = append(parts, tracker.Part{Owner: key, Findings: c.buildUnit(key)})
	took := threadTime() - began
	runtime.UnlockOSThread()
	took += c.trials.Built(key, namespace)
	c.backlog.Built(key.Name, namespace, took, time.Now())
	for _, with := range c.withHosts[key.Name] {
		parts = c.buildOne(parts, with, "")
	}
	delete(c.withHosts, key.Name)
	return parts
}

// threadTime is the processor time that this thread has taken.
func threadTime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}

// buildUnit builds a unit and records it as desired, with what follows from it.
func (c *Controller) buildUnit(key unit.Key) []finding.Finding {
	began := time.Now()
	built, findings := c.builder.Unit(key, c.store)
	c.metrics.BuildDuration.WithLabelValues(string(key.Kind)).Observe(time.Since(began).Seconds())
	switch key.Kind {
	case unit.Globals:
		globals, _ := built.Model.(model.Globals)
		c.whole.Accept(globals)
		c.sockets.last = globals.Process.Listening
		if want := c.settings.Subscriptions.GeoDatabases; want != nil && globals.Process.Geo.On {
			want()
		}
	case unit.Name:
		c.followExpiry(built)
	case unit.Backend:
		c.followHealth(built)
		c.noteBackend(built)
	case unit.DefaultCertificate:
		certificate, found := built.Model.(model.Certificate)
		if !found {
			c.settings.Expiry.Show(model.DefaultHost, nil)
			built.Model = c.generated
			break
		}
		c.settings.Expiry.Show(model.DefaultHost, &certificate)
	}
	c.settings.Overview.Set(built)
	return append(findings, c.edge.Set(built)...)
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
	added, removed := c.edge.DrainOCSPChanges()
	if len(added)+len(removed) == 0 {
		return
	}
	subjects := make([]source.Subject, len(added))
	for i, certificate := range added {
		subjects[i] = source.Subject{Name: certificate.Hash, Chain: certificate.Chain, Secret: certificate.Secret}
	}
	want(subjects, removed)
}
