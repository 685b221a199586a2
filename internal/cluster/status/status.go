// Package status writes the addresses of Ingresses into their status:
// .status.loadBalancer.
//
// It gets the addresses and the selected Ingresses. It must not know why they are
// selected and how the leader is elected.
package status

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/headgate/headgate/internal/cluster/client"
)

const (
	// parallel is the maximum number of concurrent writes.
	parallel = 10
	// firstPause is the pause after a failure, of an Ingress or of the search for
	// addresses. It doubles with each further failure, up to longestPause.
	firstPause, longestPause = time.Second, 30 * time.Second
)

// Settings are what is written, and how.
type Settings struct {
	Client *client.Clients
	// Source is where the addresses come from.
	Source AddressSource
	// Leads reports whether this replica leads. It is called before each write.
	Leads func() bool
	// Interval is the maximum time until a status that another client changed is
	// written again, and until addresses of nodes are read again.
	Interval time.Duration
	// Rate limits the requests per second. Writing an Ingress takes two.
	Rate float32
	// Clear removes the addresses when the last replica ends.
	Clear bool
	Log   *slog.Logger
}

// A Writer writes the status of the selected Ingresses. It needs the verbs get on
// ingresses and update on ingresses/status, besides those of the AddressSource.
//
// Addresses are written when an Ingress appears, everywhere when they change, and
// once per Interval if another client changed them: two controllers that claim the
// same Ingress do not compete at full speed. An Ingress that is no longer selected
// keeps its status.
type Writer struct {
	settings Settings
	limiter  flowcontrol.RateLimiter
	// logLimiter limits the log of failures, since one problem may affect all.
	logLimiter flowcontrol.RateLimiter

	mu    sync.Mutex
	known map[types.NamespacedName]*networkingv1.Ingress
	// shown are the addresses in the status of Ingresses, as far as known.
	shown map[types.NamespacedName]Addresses
	// wanted are the addresses to write, or nil if they are unknown or this process
	// must not write.
	wanted Addresses
	// queue has the Ingresses to check, whose status probably differs from the
	// wanted one. It is nil before the first term.
	queue queue
}

// New returns a Writer. It writes nothing before Lead.
func New(s Settings) *Writer {
	return &Writer{
		settings:   s,
		limiter:    flowcontrol.NewTokenBucketRateLimiter(s.Rate, 2*parallel),
		logLimiter: flowcontrol.NewTokenBucketRateLimiter(0.1, parallel),
		known:      map[types.NamespacedName]*networkingv1.Ingress{},
		shown:      map[types.NamespacedName]Addresses{},
	}
}

// Select adds Ingresses to write, in their newest version with their status, and
// removes those that are not selected any more, or gone. It does not block.
func (w *Writer) Select(put []*networkingv1.Ingress, gone []types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range gone {
		delete(w.known, name)
		delete(w.shown, name)
	}
	for _, ing := range put {
		name := nameOf(ing)
		was := w.known[name]
		w.known[name], w.shown[name] = ing, shownBy(ing)
		if w.isBehind(name) && (was == nil || !was.CreationTimestamp.Equal(&ing.CreationTimestamp)) {
			w.queue.Forget(name)
			w.queue.Add(name)
		}
	}
}

// isBehind reports whether an Ingress is to be written.
func (w *Writer) isBehind(name types.NamespacedName) bool {
	return w.wanted != nil && w.known[name] != nil && !slices.Equal(w.shown[name], w.wanted)
}

// Lead writes until term ends, or until leave is closed. Then it removes the
// addresses, if Clear is set, as long as term lasts.
func (w *Writer) Lead(term context.Context, leave <-chan struct{}) {
	defer w.want(nil)
	finder := newFinder(w.settings.Client, w.settings.Source)
	w.leadUntil(term, leave, finder)
	if term.Err() == nil {
		w.leave(term, finder)
	}
}

// leadUntil writes until leave is closed or term ends.
func (w *Writer) leadUntil(term context.Context, leave <-chan struct{}, finder *finder) {
	ctx, cancel := context.WithCancel(term)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	queue := w.beginQueue(ctx)
	for range parallel {
		group.Go(func() { w.write(ctx, queue, true) })
	}
	group.Go(func() { finder.follow(ctx) })
	group.Go(func() { w.lookAgain(ctx, finder) })
	select {
	case <-leave:
	case <-ctx.Done():
	}
}

// lookAgain finds the addresses and checks all Ingresses: immediately, when the
// addresses may have changed, and once per interval.
func (w *Writer) lookAgain(ctx context.Context, finder *finder) {
	var last string
	pause := firstPause
	for {
		again := w.settings.Interval
		found, err := finder.find(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if now := found.String(); now != last {
				w.settings.Log.Info("addresses for the status of Ingresses found", "addresses", now)
				last = now
			}
			w.want(found)
			pause = firstPause
		default:
			if err.Error() != last {
				w.settings.Log.Warn("finding the addresses for the status of Ingresses failed", "error", err, "effect", "the status does not change")
				last = err.Error()
			}
			again, pause = min(pause, again), min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-finder.changed:
		case <-time.After(again):
		}
	}
}

// leave removes the addresses if this was the last replica.
func (w *Writer) leave(ctx context.Context, finder *finder) {
	if !w.settings.Clear {
		return
	}
	others, err := finder.others(ctx)
	if err != nil {
		w.settings.Log.Warn("finding other replicas failed", "error", err, "effect", "the status of Ingresses does not change")
		return
	}
	if others {
		w.settings.Log.Info("not removing the addresses from the status of Ingresses: there are other replicas, or several addresses")
		return
	}
	queue := w.beginQueue(ctx)
	w.want(Addresses{})
	w.settings.Log.Info("removing the addresses from the status of Ingresses", "ingresses", queue.Len())
	// The writers end when it is empty.
	queue.ShutDown()
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() { w.write(ctx, queue, false) })
	}
	group.Wait()
}

// want sets the addresses to write, or nil to write nothing.
func (w *Writer) want(wanted Addresses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = wanted
	for name := range w.known {
		// Those that failed come back by themselves.
		if w.isBehind(name) && w.queue.NumRequeues(name) == 0 {
			w.queue.Add(name)
		}
	}
}
