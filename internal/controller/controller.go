// Package controller carries changes from a source to NGINX. It applies them
// to the store, builds the units that they affect, and hands them to package edge,
// which has NGINX serve them.
//
// A single goroutine does all of it, so only one change is applied at a time.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/controller/backlog"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/fakecertificate"
	"github.com/headgate/headgate/internal/controller/trial"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/unit"
)

// A Source delivers changes until its context ends: first all existing objects
// in one batch, then changes as they happen.
type Source func(ctx context.Context, deliver func(context.Context, []source.Change)) error

// MergeSources runs several sources as one, until one of them fails. The first
// one delivers all existing objects, the others deliver what they are
// subscribed to.
func MergeSources(sources ...Source) Source {
	return func(ctx context.Context, deliver func(context.Context, []source.Change)) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, run := range sources {
			group.Go(func() error { return run(ctx, deliver) })
		}
		return group.Wait()
	}
}

// A Controller serves the objects that a source delivers.
type Controller struct {
	settings Settings
	log      *slog.Logger
	metrics  *metrics.Metrics

	// queue holds changes that are not built yet.
	queue *source.Queue
	// calls run between two changes, while the store does not change.
	calls   chan func()
	store   *store.Store
	builder *build.Builder
	// backlog has the hosts that are still to be built, and turn fires when one may be; nil
	// if none waits. withHosts are backends to build with a host, by its name.
	backlog   *backlog.Backlog
	withHosts map[string][]unit.Key
	turn      <-chan time.Time

	edge half
	// started is set once NGINX runs.
	started bool
	// generated is the default certificate if the administrator gives none.
	generated model.Certificate
	trials    *trial.Trials
	whole     *trial.Whole
	sockets   sockets

	// nameWaitAllowed is the time from which updates may wait for DNS names.
	nameWaitAllowed time.Time

	// taken counts batches that were built, served those that NGINX serves.
	taken  int
	served atomic.Int64
	// applied counts those of which only hosts are left that wait for a reload which is
	// held back, or because they are dear.
	applied atomic.Int64
	// arrivals are the changes among them that were not yet.
	arrivals []arrival
}

// New returns a Controller.
func New(s Settings) *Controller {
	trials := trial.New(trial.TestBy(s.Process), s.Log)
	builder := build.New(s.Features, s.AnnotationPrefix, feature.Lacking(s.Process.Capabilities().Has)...).Try(trials.Run)
	if s.Process.Capabilities().OldPCRE {
		if err := pcre.AlsoOld(); err != nil {
			s.Log.Warn("regular expressions that NGINX's library does not take are not found", "err", err)
		}
	}
	c := &Controller{
		settings: s,
		log:      s.Log,
		metrics:  s.Metrics,
		queue:    source.NewQueue(),
		calls:    make(chan func()),
		store:    store.New(s.Store, builder.Refer),
		builder:  builder,
		trials:   trials,

		backlog:   backlog.New(),
		withHosts: map[string][]unit.Key{},
	}
	environment := s.Environment
	if s.Publisher != nil {
		s.Publisher.Notify(front{c}.Pushed)
		c.edge = s.Publisher
	} else {
		e := edge.New(s.Settings, front{c})
		c.edge, environment = e, e.Environment()
	}
	c.sockets.tried = map[netip.Addr]bool{}
	builder.Sockets(c.socketsOfBuild())
	c.whole = trial.NewWhole(trials, environment, s.Process, s.RunDir, c.edge.Globals)
	builder.Whole(c.whole.Settings())
	return c
}

// Check returns why requests are not served, or nil if they are.
func (c *Controller) Check(ctx context.Context) error { return c.edge.Check(ctx) }

// Synced reports whether NGINX serves everything delivered so far.
func (c *Controller) Synced() bool {
	return c.edge.Ready() && int(c.served.Load()) == c.queue.Puts()
}

// Applied is Synced, apart from hosts that wait because of their namespaces alone: for a
// reload which is held back, with other static settings for minutes; or because they are
// dear to build, as they were for seconds.
func (c *Controller) Applied() bool {
	return c.edge.Ready() && int(c.applied.Load()) == c.queue.Puts()
}

// Serving is closed when NGINX serves the first batch.
func (c *Controller) Serving() <-chan struct{} { return c.edge.Serving() }

// ShutdownTimeout is how long NGINX may take to finish its connections.
func (c *Controller) ShutdownTimeout() time.Duration { return c.edge.ShutdownTimeout() }

// Leave prepares for the end of NGINX: see [edge.Edge.Leave].
func (c *Controller) Leave(ctx context.Context, grace time.Duration) { c.edge.Leave(ctx, grace) }

// Run serves until ctx ends, or until an error that can't be retried. NGINX
// still runs when it returns.
func (c *Controller) Run(ctx context.Context, from Source) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sourceEnded := make(chan struct{})
	go func() {
		defer close(sourceEnded)
		if err := from(ctx, func(_ context.Context, changes []source.Change) { c.queue.Put(changes...) }); err != nil {
			cancel(fmt.Errorf("read the source: %w", err))
		}
	}()
	waitForEdge := c.edge.Run(ctx)
	err := c.serve(ctx)
	cancel(nil)
	<-sourceEnded
	waitForEdge()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

func (c *Controller) serve(ctx context.Context) error {
	select {
	case <-c.queue.Filled():
	case <-ctx.Done():
		return nil
	}
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			c.lookAtAddresses(ctx)
		case <-c.queue.Filled():
			c.takeChanges(ctx)
		case <-c.turn:
			c.takeTurn(ctx)
		case call := <-c.calls:
			call()
		case event := <-c.edge.Events():
			event(ctx)
		case <-c.trials.Again():
			c.tryAgain()
			c.edge.Apply(ctx)
		}
	}
}

// lookInterval is that of looks at the machine's addresses.
const lookInterval = 5 * time.Second

// takeChanges applies what the source delivered.
func (c *Controller) takeChanges(ctx context.Context) {
	var changes []source.Change
	changes, c.taken = c.queue.Collect(ctx)
	c.update(ctx, changes)
	c.edge.Apply(ctx)
	c.publishSelection()
}

// takeTurn builds hosts of the backlog. New changes come first, and build hosts too.
func (c *Controller) takeTurn(ctx context.Context) {
	select {
	case <-c.queue.Filled():
		c.takeChanges(ctx)
	default:
		c.build(nil)
		c.edge.Apply(ctx)
	}
}

// start builds all units, and starts NGINX with them.
func (c *Controller) start(ctx context.Context) error {
	began := time.Now()
	var err error
	if c.generated, err = fakecertificate.New(began); err != nil {
		return fmt.Errorf("make the default certificate: %w", err)
	}
	var changes []source.Change
	changes, c.taken = c.queue.Collect(ctx)
	for _, change := range changes {
		c.store.Apply(change.Object, change.Deleted)
	}
	c.awaitReferences(ctx, secretsAtStart, namesAtStart)
	c.buildAll(c.store.All())
	if err := c.edge.Start(ctx); err != nil {
		return err
	}
	c.started = true
	c.publishSelection()
	c.log.Debug("started", "units", len(c.store.All()), "took", time.Since(began).Round(time.Millisecond))
	return nil
}
