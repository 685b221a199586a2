// Package upstream has an edge follow its control: it gets what is published, keeps it over a restart, and lets the
// control know of the edge.
//
// It ties the parts together that do so, and has a new connection made where one has ended.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/controller/follower"
	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit/journal"
	"github.com/headgate/headgate/internal/unit/link"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/xds"
)

// Settings are those of an Upstream.
type Settings struct {
	Follower *follower.Follower
	// Control is where it is, and how it knows this edge.
	Control link.ClientSettings
	// Name is this edge's.
	Name string
	// StateDir keeps what was received; empty for nothing.
	StateDir string
	Log      *slog.Logger
}

// An Upstream has a Follower follow the control, and the control know of this edge.
type Upstream struct {
	Settings
	// Reporter says what the control is to know. It must be set before Run.
	Reporter *reports.Reporter

	client *link.Client
	// kept has what was received, over a restart; nil if nothing does.
	kept *journal.Journal

	connected atomic.Bool
	// problem is why there is no connection; nil if there is one, or none was tried.
	problem atomic.Pointer[string]
}

// New makes an Upstream that does not follow yet.
func New(s Settings) (*Upstream, error) {
	client, err := link.NewClient(s.Control)
	if err != nil {
		return nil, err
	}
	u := &Upstream{Settings: s, client: client}
	if s.StateDir == "" {
		return u, nil
	}
	if u.kept, err = journal.Open(s.StateDir, xds.Schema, s.Log); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return u, nil
}

// Connected reports whether the control is there.
func (u *Upstream) Connected() bool { return u.connected.Load() }

// Close closes the connection. Run must have ended.
func (u *Upstream) Close() {
	// There is nothing to do about what can't be closed at the end.
	_ = u.client.Close()
	if u.kept != nil {
		_ = u.kept.Close()
	}
}

// Check returns why requests are not served, or nil if they are.
func (u *Upstream) Check(ctx context.Context) error {
	err := u.Follower.Check(ctx)
	problem := u.problem.Load()
	if err == nil || problem == nil {
		return err
	}
	select {
	case <-u.Follower.Serving():
		return err
	default:
		return fmt.Errorf("%w: waiting for the control at %s: %s", err, u.Control.Address, *problem)
	}
}

// Databases is a source that delivers those of where addresses are.
type Databases func(context.Context, func(context.Context, []source.Change)) error

// Run serves, and follows the control, until ctx ends.
func (u *Upstream) Run(ctx context.Context, from Databases) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, do := range []func(){
		func() { u.client.Run(ctx) },
		func() { u.follow(ctx) },
		func() {
			u.again(ctx, func(ctx context.Context) error { return u.Reporter.Report(ctx, u.client.Connection()) }, func(error) {})
		},
		// It ends with ctx, without an error.
		func() { _ = from(ctx, u.takeDatabases) },
	} {
		group.Go(do)
	}
	err := u.Follower.Run(ctx)
	cancel()
	group.Wait()
	return err
}

// takeDatabases passes databases of where addresses are on.
func (u *Upstream) takeDatabases(ctx context.Context, changes []source.Change) {
	for _, change := range changes {
		if d, is := change.Object.(*source.GeoDatabase); is && !change.Deleted {
			// It fails at the end alone.
			_ = u.Follower.SetDatabase(ctx, feature.GeoDatabase{Edition: d.Name, Digest: d.Digest, Problem: d.Problem})
		}
	}
}

// Pauses between two attempts. They differ, so that many edges do not come at the same moment.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
	// steadyAfter is how long one must have lasted for the next pause to be a first one again.
	steadyAfter = 10 * time.Second
)

// again does something that fails at some time, until ctx ends.
func (u *Upstream) again(ctx context.Context, do func(context.Context) error, failed func(error)) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		failed(err)
		if time.Since(began) > steadyAfter {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, longestPause)
	}
}

// follow serves what was kept, and follows the control until ctx ends. While there is none, what it published last is
// served.
func (u *Upstream) follow(ctx context.Context) {
	if u.kept != nil {
		if last := u.kept.Load(); len(last.Resources) > 0 {
			u.Log.Info("serving what the control published before this start", "units", len(last.Resources))
			if err := u.Follower.Take(ctx, last); err != nil {
				u.Log.Warn("what was kept can't be served as it is", "error", err)
			}
		}
	}
	u.again(ctx, func(ctx context.Context) error {
		return xds.Follow(ctx, u.client.Connection(), u.Name, u.Follower.Held(), u.take)
	}, u.lost)
}

// take has NGINX serve a cut.
func (u *Upstream) take(ctx context.Context, cut publish.Cut) error {
	if !u.connected.Swap(true) {
		u.problem.Store(nil)
		u.Log.Info("connected to the control", "control", u.Control.Address)
	}
	err := u.Follower.Take(ctx, cut)
	if u.kept != nil && len(cut.Resources)+len(cut.Gone) > 0 && ctx.Err() == nil {
		if err := u.kept.Append(cut); err != nil {
			u.Log.Error("what the control publishes is not kept over a restart", "error", err)
		}
	}
	return err
}

// lost notes that there is no connection.
func (u *Upstream) lost(err error) {
	last := u.problem.Load()
	if u.connected.Swap(false) || last == nil || *last != err.Error() {
		u.Log.Warn("there is no connection to the control: what it published last is served", "control", u.Control.Address, "error", err)
	}
	u.problem.Store(new(err.Error()))
}
