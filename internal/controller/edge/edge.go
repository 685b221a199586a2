// Package edge is the half of the controller that has NGINX: it takes what was built, pushes the
// units that differ, and reloads NGINX when a static file differs.
//
// A single goroutine calls it, and runs its events between two changes. So only one change is
// applied at a time. Nothing becomes visible in part: a failed step is retried, and the last good
// state stays. It must not know where units come from.
package edge

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/controller/edge/worker"
	"github.com/headgate/headgate/internal/controller/event"
	"github.com/headgate/headgate/internal/controller/retry"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// A Builder makes what an Edge serves. Its methods are called by the goroutine of the Edge.
type Builder interface {
	// CanBuild reports whether there are hosts to build now: a reload waits a little for their
	// profiles.
	CanBuild() bool
	// Rebuild sets hosts again which get other profiles.
	Rebuild(hosts []string)
	// Reconsider sets the globals again, after NGINX rejected its configuration because of something
	// else than that.
	Reconsider()
	// Refuse sets the globals again without texts of the administrator with which NGINX could not be
	// reloaded. current is what it runs with.
	Refuse(texts model.Snippets, err error, current model.Globals)
	// Pushed is called when what can be pushed was pushed: all reports whether that is everything,
	// and held whether the rest waits for a reload that is held back.
	Pushed(all, held bool)
	// Unpushed is called when a push failed, which is repeated: what is set meanwhile is pushed as well.
	Unpushed(err error)
}

// An Edge serves units with NGINX.
type Edge struct {
	settings Settings
	builder  Builder

	desired *plan.Desired
	static  plan.Static
	client  *dataplane.Client
	// instance is the NGINX process whose memory is being filled.
	instance string
	reload   reload
	// retry says when a failed push is repeated, and again does it.
	retry retry.Timer
	again *alarm
	// defersReload is since when a reload waits for hosts that may be built, zero if none does.
	defersReload time.Time
	// limits are those of reloads, from the ConfigMap.
	limits model.Process
	// passthrough is what applies to TLS connections that may be passed through; nil once that is known there.
	passthrough *model.TLSPassthrough
	// workers are the generations of workers that accepted connections, by process ID.
	workers worker.Generations
	// held is the number of units that the last push left for after a reload, and unpushed is set while there
	// is something that no push had yet.
	held     int
	unpushed bool

	events event.Events
	ready  atomic.Bool
	// serving is closed when the first load is complete.
	serving chan struct{}
	// leaving is set when NGINX is about to end; see Leave.
	leaving  atomic.Bool
	shutdown atomic.Int64
}

// New returns an Edge without units.
func New(s Settings, builder Builder) *Edge {
	client := dataplane.New(s.RunDir.Socket())
	registerNGINX(s, client)
	if s.Traffic != nil {
		s.Environment.Traffic = trafficPlan(s.Traffic.Settings())
	}
	e := Without(s, builder)
	e.client = client
	return e
}

// Without returns an Edge that takes units and has no NGINX.
func Without(s Settings, builder Builder) *Edge {
	e := &Edge{
		settings: s, builder: builder,
		desired: plan.NewDesired(feature.Directives(s.Features)), workers: worker.Generations{},
		events: event.New(), serving: make(chan struct{}),
	}
	e.desired.KeepsCommon = s.Timing.CommonProfiles
	return e
}

// Events are to be run between two changes.
func (e *Edge) Events() <-chan func(context.Context) { return e.events.Events() }

// Run fetches what workers report, and looks after NGINX, until ctx ends. wait ends the events, and
// waits until the rest is over.
func (e *Edge) Run(ctx context.Context) (wait func()) {
	waitForReports := e.fetchReports(ctx)
	go func() {
		look := time.NewTicker(givenUpPoll)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				e.events.Post(e.noteGivenUp)
			case pid := <-e.settings.Process.Restarted():
				e.events.Post(func(ctx context.Context) { e.restarted(ctx, pid) })
			}
		}
	}()
	return func() {
		e.events.End()
		waitForReports()
		// When NGINX gets the signal to quit, it waits up to a minute for the first
		// request of a connection, and the client may hold one that it never used.
		e.client.CloseIdle()
	}
}

// An alarm is an event at a time.
type alarm struct {
	timer *time.Timer
	over  bool
}

// after has an event run after a time, unless the alarm is stopped.
func (e *Edge) after(wait time.Duration, do func(context.Context)) *alarm {
	a := &alarm{}
	a.timer = time.AfterFunc(wait, func() {
		e.events.Post(func(ctx context.Context) {
			if !a.over {
				a.over = true
				do(ctx)
			}
		})
	})
	return a
}

// stop ends an alarm, if there is one.
func (a *alarm) stop() {
	if a != nil {
		a.over = true
		a.timer.Stop()
	}
}

// isSet reports whether there is an alarm that is still to come.
func (a *alarm) isSet() bool { return a != nil && !a.over }

// Check returns why requests are not served, or nil if they are.
func (e *Edge) Check(ctx context.Context) error {
	if e.leaving.Load() {
		return errors.New("shutting down")
	}
	if !e.ready.Load() {
		return errors.New("the first load is not complete")
	}
	state, err := e.client.State(ctx)
	if err == nil && !state.Loaded {
		// NGINX was restarted, and that was not noticed yet.
		err = errors.New("NGINX is not loaded")
	}
	return err
}

// Ready reports whether the first load of NGINX is complete.
func (e *Edge) Ready() bool { return e.ready.Load() }

// Serving is closed when NGINX serves the first batch.
func (e *Edge) Serving() <-chan struct{} { return e.serving }

// ShutdownTimeout is how long NGINX may take to finish its connections.
func (e *Edge) ShutdownTimeout() time.Duration { return time.Duration(e.shutdown.Load()) }

// Environment is what nginx.conf is rendered with besides settings and units.
func (e *Edge) Environment() nginxconf.Environment { return e.settings.Environment }

// Globals are those that NGINX runs with.
func (e *Edge) Globals() model.Globals { return e.static.Globals() }

// Count is the number of units of a kind.
func (e *Edge) Count(kind unit.Kind) int { return e.desired.Count(kind) }

// AppliedNames are the names of the units of a kind that NGINX has, sorted.
func (e *Edge) AppliedNames(kind unit.Kind) []string { return e.desired.AppliedNames(kind) }

// Rebound decides which profiles are beyond the maximum, after hosts were set, and returns those to set again.
func (e *Edge) Rebound() []string { return e.desired.Rebound() }

// Expect notes that a host is to be set again, later than what changed with it.
func (e *Edge) Expect(host string) { e.desired.Expect(host) }

// DrainOCSPChanges returns the certificates whose OCSP responses are wanted from now on, and the hashes of
// those of which they no longer are, since the last call.
func (e *Edge) DrainOCSPChanges() (added []model.Certificate, removed []string) {
	return e.desired.DrainOCSPChanges()
}

// BoundProfiles replaces the profiles of a host by those that are served.
func (e *Edge) BoundProfiles(h *model.Host) []finding.Finding {
	findings := e.desired.BoundProfiles(h)
	e.desired.SubstituteHost(h)
	return findings
}

// Start starts NGINX with what was set, and pushes the units.
func (e *Edge) Start(ctx context.Context) error {
	e.configurePassthrough()
	first := nginxconf.FirstDictionaries(e.desired.Size())
	if e.settings.Dictionaries != nil {
		first = *e.settings.Dictionaries
	}
	next, _, err := e.desired.Next(e.settings.Environment, plan.Static{Dictionaries: first}, nil)
	if err != nil {
		return err
	}
	if err := e.write(next); err != nil {
		return err
	}
	e.listen(next)
	if err := e.settings.Process.Start(ctx); err != nil {
		return err
	}
	e.static = next
	e.noteConfigured()
	e.Apply(ctx)
	return nil
}

// restarted pushes everything to an NGINX that was restarted.
func (e *Edge) restarted(ctx context.Context, pid int) {
	e.settings.Log.Warn("NGINX was restarted; pushing all units", "pid", pid)
	e.settings.Metrics.Restarts.Inc()
	e.settings.History.Restart()
	e.client.CloseIdle()
	e.ready.Store(false)
	e.unpushed = true
	e.reload.drop()
	// Held hosts can't wait for the interval between reloads.
	e.reload.last = time.Time{}
	e.reload.budget.Refill()
	e.Apply(ctx)
}
