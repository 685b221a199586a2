// Package controller carries changes from a source to NGINX: it applies them
// to the store, builds the units that they touch, and pushes what differs;
// when a static byte differs, it reloads NGINX.
//
// One goroutine does all of it, so there is one apply at a time. Nothing that
// failed is half visible: it is tried again, and the last good state stays.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/expiry"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/ledger"
	"github.com/headgate/headgate/internal/metrics"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
)

// Settings are what a Controller is made of.
type Settings struct {
	Store    store.Settings
	Features []feature.Feature
	// AnnotationPrefix stands before the names of annotations, without the
	// slash.
	AnnotationPrefix string
	Environment      plan.Environment
	// Dictionaries to start with, nil for a size that fits what there is.
	Dictionaries *plan.Dictionaries
	Process      *nginx.Process
	RunDir       *nginx.RunDir
	Metrics      *metrics.Metrics
	// Ledger takes the findings of all units.
	Ledger *ledger.Ledger
	Log    *slog.Logger
	// Timing of reloads; see Timing.
	Timing Timing
	// Expiry is told which certificates names show.
	Expiry *expiry.Watch
	// Want tells sources what is referred to.
	Want Wants
	// Selected is told which Ingresses are served, once they are; nil for
	// nobody. It must not wait.
	Selected func(store.Selection)
	// Notices go to who tells the cluster.
	Notices Notices
}

// Notices are functions that are told what was done. They must not wait; those
// that are nil are not called.
type Notices struct {
	// Taken is told of each Ingress that came or changed after the first load,
	// and is served.
	Taken func(ingress types.NamespacedName)
	// Reloaded is told of each reload, or why it failed.
	Reloaded func(err error)
}

// Timing says how long the steps of a reload take.
type Timing struct {
	// Drain is how long clients are asked to leave their connections, at the
	// least, before a reload or the end of NGINX closes them.
	Drain time.Duration
	// Apart is the least time between two reloads.
	Apart time.Duration
	// Settle is how long to wait at most until no old worker accepts
	// connections any more.
	Settle time.Duration
}

// DefaultTiming loses no request of a client that is busy.
func DefaultTiming() Timing {
	return Timing{Drain: 700 * time.Millisecond, Apart: 2 * time.Second, Settle: 10 * time.Second}
}

// A Source delivers changes until its context ends: first everything there
// is, in one batch, then what happens.
type Source func(ctx context.Context, deliver func(context.Context, []source.Change)) error

// Want tells a source what is referred to from now on, and what no longer. The
// channel is closed once what there is of the added ones was delivered. It must
// not wait.
type Want[Name any] func(added, removed []Name) (delivered <-chan struct{})

// Wants are for sources that deliver only what is referred to.
type Wants struct {
	// Secrets is nil for a source that delivers every Secret by itself.
	Secrets Want[types.NamespacedName]
	// ConfigMaps is the same for ConfigMaps, the one with Headgate's options
	// apart.
	ConfigMaps Want[types.NamespacedName]
	// Addresses asks for what DNS names stand for; nil where nobody looks them
	// up.
	Addresses Want[string]
	// Issuers asks for what is at the URLs of issuers' certificates; nil where
	// nobody fetches it. It must not wait.
	Issuers func(added, removed []string)
	// Staples asks for OCSP answers, and for those of these names no longer; nil
	// where nobody fetches them. It must not wait.
	Staples func(added []source.Subject, removed []string)
}

// A Controller serves what a source delivers.
type Controller struct {
	settings Settings
	log      *slog.Logger
	metrics  *metrics.Metrics

	// queue has what sources delivered and was not built yet.
	queue *source.Queue
	// questions are asked between two changes, where the store stands still.
	questions chan func()
	store     *store.Store
	builder   *build.Builder

	desired *plan.Desired
	// generated is shown where there is no other default certificate.
	generated model.Certificate
	static    plan.Static
	client    *dataplane.Client
	// instance is the NGINX whose memory is being filled.
	instance string
	reload   reload
	retry    retry

	// namesAgain is until when no update waits for DNS names.
	namesAgain time.Time

	// taken counts batches that were built, served those that NGINX has.
	taken  int
	served atomic.Int64
	// held is the number of units that waited for a reload after the last push.
	held int

	ready atomic.Bool
	// serving is closed when it is ready for the first time.
	serving chan struct{}
	// leaving says that NGINX is to end; see Leave.
	leaving  atomic.Bool
	shutdown atomic.Int64
}

// New makes a Controller.
func New(s Settings) *Controller {
	builder := build.New(s.Features, s.AnnotationPrefix, lacking(s.Process.Capabilities())...)
	return &Controller{
		settings:  s,
		log:       s.Log,
		metrics:   s.Metrics,
		queue:     source.NewQueue(),
		questions: make(chan func()),
		store:     store.New(s.Store, builder.Refer),
		builder:   builder,
		desired:   plan.NewDesired(feature.Directives(s.Features)),
		serving:   make(chan struct{}),
		client:    dataplane.New(s.RunDir.Socket()),
	}
}

// Check says why requests are not served as they should be, nil if they are.
func (c *Controller) Check(ctx context.Context) error {
	if c.leaving.Load() {
		return errors.New("shutting down")
	}
	if !c.ready.Load() {
		return errors.New("the first load is not complete")
	}
	state, err := c.client.State(ctx)
	if err == nil && !state.Loaded {
		// NGINX was started anew and this controller has yet to hear of it.
		err = errors.New("NGINX is not loaded")
	}
	return err
}

// Synced tells whether NGINX serves all that was delivered so far.
func (c *Controller) Synced() bool {
	return c.ready.Load() && int(c.served.Load()) == c.queue.Puts()
}

// Serving is closed when NGINX serves all that was delivered first.
func (c *Controller) Serving() <-chan struct{} { return c.serving }

// ShutdownTimeout is how long NGINX may take to finish its connections.
func (c *Controller) ShutdownTimeout() time.Duration {
	return time.Duration(c.shutdown.Load())
}

// Run serves until ctx ends, or until something fails that can't be tried
// again. NGINX still runs when it returns.
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
	err := c.serve(ctx)
	cancel(nil)
	<-sourceEnded
	// NGINX waits a minute for the first request of a connection when it is
	// told to quit, and the client may have one that it never used.
	c.client.CloseIdle()
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
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.queue.Filled():
			changes, batches := c.queue.Collect(ctx)
			c.taken = batches
			c.update(ctx, changes)
			c.apply(ctx)
			c.tellSelected()
		case ask := <-c.questions:
			ask()
		case restarted := <-c.settings.Process.Restarted():
			c.restarted(ctx, restarted)
		case <-c.retry.due():
			c.apply(ctx)
		case <-c.reload.due():
			c.considerReload(ctx)
		case err := <-c.reload.tested:
			c.testedReload(ctx, err)
		case <-c.reload.drained():
			c.finishReload(ctx)
		}
	}
}

// start builds everything there is, and starts NGINX with it.
func (c *Controller) start(ctx context.Context) error {
	began := time.Now()
	generated, err := generateCertificate(time.Now())
	if err != nil {
		return err
	}
	c.generated = generated
	changes, batches := c.queue.Collect(ctx)
	c.taken = batches
	for _, change := range changes {
		c.store.Apply(change.Object, change.Deleted)
	}
	c.awaitWanted(ctx, secretsAtStart, namesAtStart)
	c.build(c.store.All())

	first := plan.FirstDictionaries(c.desired.Bytes())
	if c.settings.Dictionaries != nil {
		first = *c.settings.Dictionaries
	}
	next, _, err := c.desired.Next(c.settings.Environment, plan.Static{Dictionaries: first}, nil)
	if err != nil {
		return err
	}
	if err := c.write(next); err != nil {
		return err
	}
	if err := c.settings.Process.Start(ctx); err != nil {
		return err
	}
	c.static = next
	c.metrics.NginxConfBytes.Set(float64(len(next.Files[plan.NginxConf])))
	c.apply(ctx)
	c.tellSelected()
	c.log.Debug("started", "units", len(c.store.All()), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// restarted pushes everything to an NGINX that was started anew.
func (c *Controller) restarted(ctx context.Context, pid int) {
	c.log.Warn("NGINX was started anew; pushing everything", "pid", pid)
	c.metrics.Restarts.Inc()
	c.client.CloseIdle()
	c.ready.Store(false)
	c.reload.drop()
	// Held hosts can't wait for a pause between reloads.
	c.reload.last = time.Time{}
	c.apply(ctx)
}
