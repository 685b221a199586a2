// Package follower has NGINX serve what a control publishes: it takes cuts, makes units of them, and
// hands them to package edge.
//
// A single goroutine does all of it. It must not know Kubernetes, nor how cuts come.
package follower

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/fakecertificate"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A Follower serves what a control publishes.
type Follower struct {
	edge    *edge.Edge
	log     *slog.Logger
	tracker *tracker.Tracker

	// resources are what was received.
	resources map[unit.Key]wire.Resource
	// generated is the default certificate if the control gives none.
	generated model.Certificate
	// profile is the default one, and configured is set once there are globals.
	profile    model.Profile
	configured bool
	// refused are texts of the administrator that NGINX could not be reloaded with, and instead what it runs with.
	refused, instead model.Snippets

	here          here
	wantDatabases func()

	cuts  chan received
	calls chan func(context.Context)
	ended chan struct{}
	// unpushed are cuts that were taken and not answered: nothing was pushed since.
	unpushed []chan<- error
	// rejected is why units can't be served as they are.
	rejected map[unit.Key]error
	// synced is whether NGINX serves all that was received.
	synced atomic.Bool
}

// A received cut is waited for.
type received struct {
	cut  publish.Cut
	done chan<- error
}

// New returns a Follower that has received nothing. wantDatabases asks for the databases of where addresses are, which
// SetDatabase gets. It must not block.
func New(s edge.Settings, wantDatabases func()) *Follower {
	f := &Follower{log: s.Log, wantDatabases: wantDatabases, tracker: s.Tracker, resources: map[unit.Key]wire.Resource{}, rejected: map[unit.Key]error{}, cuts: make(chan received), calls: make(chan func(context.Context)), ended: make(chan struct{})}
	f.edge = edge.New(s, builder{f})
	return f
}

// Take has NGINX serve a cut. It returns when everything was pushed that can be, with why units can't be
// served, or when a push failed, which is repeated.
func (f *Follower) Take(ctx context.Context, cut publish.Cut) error {
	done := make(chan error, 1)
	select {
	case f.cuts <- received{cut, done}:
	case <-f.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-f.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errEnded = errors.New("NGINX is not served any more")

// Held are the versions of what was received. It must not be called before Take has returned, other than by the end
// of its context.
func (f *Follower) Held() map[unit.Key]string {
	held := make(map[unit.Key]string, len(f.resources))
	for key, r := range f.resources {
		held[key] = r.Version
	}
	return held
}

// Synced reports whether NGINX serves all that was received.
func (f *Follower) Synced() bool { return f.edge.Ready() && f.synced.Load() }

// Check returns why requests are not served, or nil if they are.
func (f *Follower) Check(ctx context.Context) error { return f.edge.Check(ctx) }

// Serving is closed when NGINX serves what was received first.
func (f *Follower) Serving() <-chan struct{} { return f.edge.Serving() }

// ShutdownTimeout is how long NGINX may take to finish its connections.
func (f *Follower) ShutdownTimeout() time.Duration { return f.edge.ShutdownTimeout() }

// Leave prepares for the end of NGINX: see [edge.Edge.Leave].
func (f *Follower) Leave(ctx context.Context, grace time.Duration) { f.edge.Leave(ctx, grace) }

// Run serves until ctx ends, or until an error that can't be repeated. NGINX still runs when it returns.
func (f *Follower) Run(ctx context.Context) error {
	defer close(f.ended)
	ctx, cancel := context.WithCancel(ctx)
	wait := f.edge.Run(ctx)
	defer wait()
	defer cancel()
	var err error
	if f.generated, err = fakecertificate.New(time.Now()); err != nil {
		return fmt.Errorf("make the default certificate: %w", err)
	}
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	started := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-f.cuts:
			f.take(r)
			switch {
			case !f.configured:
				// Without them NGINX would guard nothing.
				builder{f}.Pushed(false, false)
				continue
			case started:
				f.edge.Apply(ctx)
				continue
			}
			if err := f.edge.Start(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			started = true
		case event := <-f.edge.Events():
			event(ctx)
		case call := <-f.calls:
			call(ctx)
		case <-look.C:
			if started {
				f.lookAtAddresses(ctx)
			}
		}
	}
}

// take sets what is in a cut.
func (f *Follower) take(r received) {
	f.synced.Store(false)
	f.unpushed = append(f.unpushed, r.done)
	first := len(f.resources) == 0
	for _, one := range r.cut.Resources {
		f.resources[one.Key] = one
	}
	for _, one := range r.cut.Resources {
		f.set(one.Key)
	}
	for _, key := range r.cut.Gone {
		delete(f.resources, key)
	}
	for _, key := range r.cut.Gone {
		f.set(key)
	}
	if _, given := f.resources[unit.DefaultCertificateKey]; first && !given {
		f.set(unit.DefaultCertificateKey)
	}
	if hosts := f.edge.Rebound(); len(hosts) > 0 {
		builder{f}.Rebuild(hosts)
	}
}

// set hands a unit to NGINX's half, or its end.
func (f *Follower) set(key unit.Key) {
	if key.Kind == unit.Certificate || key.Kind == unit.Content {
		return // They come with the units that refer to them.
	}
	built := unit.Built{Key: key}
	var findings []finding.Finding
	delete(f.rejected, key)
	if r, found := f.resources[key]; found {
		var err error
		if built, err = wire.Decode(key, r.Bytes, f.find); err != nil {
			f.rejected[key] = err
			var closes bool
			built, closes = f.closed(key)
			findings = append(findings, unread(key, err, closes))
			if !closes {
				f.tracker.Update([]tracker.Part{{Owner: served(key), Findings: findings}})
				return
			}
		}
	}
	switch m := built.Model.(type) {
	case model.Globals:
		f.profile, f.configured = m.Default, true
		findings = f.localize(&m)
		if f.refused.IsZero() || m.Process.Snippets != f.refused {
			f.refused, f.instead = model.Snippets{}, model.Snippets{}
		} else {
			f.rejected[key] = errors.New("NGINX could not be reloaded with the administrator's texts: those before are used")
			m.Process.Snippets = f.instead
		}
		built.Model = m
	case nil:
		if key == unit.DefaultCertificateKey {
			built.Model = f.generated
		}
	}
	f.tracker.Update([]tracker.Part{{Owner: served(key), Findings: append(findings, f.edge.Set(built)...)}})
}

// unread is the finding about a unit that is not understood here.
func unread(key unit.Key, err error, closed bool) finding.Finding {
	effect := "it stays as it was"
	if closed {
		effect = "it is closed: requests are answered 503, and ports are not open"
	}
	return finding.Finding{
		Object: thisEdge, Field: key.String(), Code: finding.MissingCapability, Denies: closed,
		Message: "this edge does not understand what the control has: both must be of the same release, or the next one (" + err.Error() + ")", Effect: effect,
	}
}

// served owns findings about what becomes of a unit here.
type served unit.Key

// nowhere is the host of names that are not understood. There is none of the name, so that their requests are
// answered 503.
const nowhere = "-"

// closed is what is served of a unit that is not understood here, since something in it may be a guard. Of others
// what there was is served on.
func (f *Follower) closed(key unit.Key) (closed unit.Built, closes bool) {
	switch key.Kind {
	case unit.Host:
		routes := []model.Route{{Kind: model.Prefix, Path: "/", Denied: true, Profile: f.profile}}
		return unit.Built{Key: key, Model: model.Host{Name: key.Name, Routes: routes}}, true
	case unit.Name:
		return unit.Built{Key: key, Model: model.Name{Name: key.Name, Host: nowhere, HasTLS: true}}, true
	case unit.Stream:
		return unit.Built{Key: key}, true
	}
	return unit.Built{}, false
}

func (f *Follower) find(key unit.Key) ([]byte, bool) {
	r, found := f.resources[key]
	return r.Bytes, found
}

// A builder is what the half with NGINX asks for: an [edge.Builder].
type builder struct{ *Follower }

// CanBuild is false: nothing is built here.
func (builder) CanBuild() bool { return false }

// Rebuild sets hosts again.
func (b builder) Rebuild(hosts []string) {
	for _, host := range hosts {
		b.set(unit.Host.Key(host))
	}
}

// Reconsider sets the globals again.
func (b builder) Reconsider() { b.set(unit.GlobalsKey) }

// Refuse sets the globals without texts that NGINX could not be reloaded with.
func (b builder) Refuse(texts model.Snippets, err error, current model.Globals) {
	b.log.Error("texts of the administrator are not used: NGINX could not be reloaded with them", "error", err)
	b.refused, b.instead = texts, current.Process.Snippets
	b.Reconsider()
}

// Pushed acknowledges what was received.
func (b builder) Pushed(all, _ bool) {
	b.synced.Store(all)
	b.answer(nil)
}

// Unpushed rejects what was received. The next cut may be what makes a push succeed, such as the end of a large unit,
// and the control sends it only after an answer.
func (b builder) Unpushed(err error) { b.answer(fmt.Errorf("push to NGINX: %w", err)) }

// answer says why units, or anything, can't be served.
func (f *Follower) answer(unpushed error) {
	list := []error{unpushed}
	for _, key := range slices.SortedFunc(maps.Keys(f.rejected), unit.Key.Compare) {
		list = append(list, f.rejected[key])
	}
	err := errors.Join(list...)
	for _, done := range f.unpushed {
		done <- err
	}
	f.unpushed = nil
}
