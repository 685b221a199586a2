// Package status writes into Ingresses at which addresses they are served:
// their .status.loadBalancer.
//
// It knows the addresses, and the Ingresses that others select; why these are
// selected and who leads it must not know.
package status

import (
	"context"
	"log/slog"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// parallel is how many Ingresses are written at once at most.
	parallel = 10
	// firstPause is how long an Ingress, or the question for the addresses,
	// rests after a failure; it doubles with each further one, to longestPause
	// at most.
	firstPause, longestPause = time.Second, 30 * time.Second
)

// Settings say what is written, and how.
type Settings struct {
	Client kubernetes.Interface
	// Place says where the addresses come from.
	Place Place
	// Leads is asked right before each write, which is left out if it says no.
	Leads func() bool
	// Interval is how long it takes at most until what others wrote into a
	// status is seen to, and until addresses of nodes are asked for again.
	Interval time.Duration
	// Rate bounds the requests a second that writing takes: two an Ingress.
	Rate float32
	// Clear has the addresses removed when the last replica leaves.
	Clear bool
	Log   *slog.Logger
}

// A Writer writes the status of the Ingresses that it is told of. The verbs get
// on ingresses and update on ingresses/status suffice, beside those that the
// Place needs.
//
// Addresses are put where an Ingress appears, everywhere when they change, and,
// where somebody else changed them, once an Interval: two controllers that
// claim the same Ingress don't fight for it at full speed. An Ingress that is no
// longer selected keeps the status that it has.
type Writer struct {
	settings Settings
	limiter  flowcontrol.RateLimiter
	finder   *finder
	// tell bounds what the log has of failures: one thing may be wrong with all.
	tell flowcontrol.RateLimiter

	mu    sync.Mutex
	known map[types.NamespacedName]*networkingv1.Ingress
	// shown is what the Ingresses are known to have in their status.
	shown map[types.NamespacedName]addresses
	// wanted is what they are to have; nil while that is not known or this
	// process is not to write.
	wanted addresses
	// behind are the Ingresses to look at: in all likelihood they have another
	// status than the wanted one. Those that appeared go first, so that nobody
	// waits until all old ones have new addresses.
	behind, appeared map[types.NamespacedName]struct{}
	// resting are those that could not be written.
	resting map[types.NamespacedName]*rest
	// filled wakes those who write when there is something for them.
	filled chan struct{}
}

// New makes a Writer that writes nothing yet.
func New(s Settings) *Writer {
	return &Writer{
		settings: s,
		limiter:  flowcontrol.NewTokenBucketRateLimiter(s.Rate, 2*parallel),
		finder:   newFinder(s.Client, s.Place),
		tell:     flowcontrol.NewTokenBucketRateLimiter(0.1, parallel),
		known:    map[types.NamespacedName]*networkingv1.Ingress{},
		shown:    map[types.NamespacedName]addresses{},
		behind:   map[types.NamespacedName]struct{}{},
		appeared: map[types.NamespacedName]struct{}{},
		resting:  map[types.NamespacedName]*rest{},
		filled:   make(chan struct{}, parallel),
	}
}

// Select says which Ingresses there are to write: those that are put, in their
// newest version with the status that they have, and those that are no longer
// selected, or gone. It does not wait.
func (w *Writer) Select(put []*networkingv1.Ingress, gone []types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range gone {
		delete(w.known, name)
		delete(w.shown, name)
		w.settle(name)
	}
	for _, ing := range put {
		name := nameOf(ing)
		was := w.known[name]
		w.known[name], w.shown[name] = ing, shownBy(ing)
		if w.wanted == nil || w.shown[name].equal(w.wanted) {
			w.settle(name)
		} else if was == nil || !was.CreationTimestamp.Equal(&ing.CreationTimestamp) {
			w.wakeUp(name)
			w.appeared[name] = struct{}{}
		}
	}
	w.wake()
}

// Lead writes until term ends, or until leave is closed. Then it removes the
// addresses, if that is to be done, as long as term lasts.
func (w *Writer) Lead(term context.Context, leave <-chan struct{}) {
	defer w.want(nil)
	w.leadUntil(term, leave)
	if term.Err() == nil {
		w.leave(term)
	}
}

// leadUntil writes until leave is closed or term ends.
func (w *Writer) leadUntil(term context.Context, leave <-chan struct{}) {
	ctx, cancel := context.WithCancel(term)
	defer w.wakeAll()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	w.finder.begin()
	for range parallel {
		group.Go(func() { w.write(ctx, true) })
	}
	group.Go(func() { w.finder.follow(ctx) })
	group.Go(func() { w.lookAgain(ctx) })
	select {
	case <-leave:
	case <-ctx.Done():
	}
}

// lookAgain finds the addresses and looks at all Ingresses: at once, when the
// addresses may have changed, and once an interval.
func (w *Writer) lookAgain(ctx context.Context) {
	var last string
	pause := firstPause
	for {
		again := w.settings.Interval
		found, err := w.finder.find(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if now := found.String(); now != last {
				w.settings.Log.Info("the status of Ingresses shows", "addresses", now)
				last = now
			}
			w.want(found)
			pause = firstPause
		default:
			if err.Error() != last {
				w.settings.Log.Warn("the addresses for the status of Ingresses", "error", err, "effect", "the status stays as it is")
				last = err.Error()
			}
			again, pause = min(pause, again), min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.finder.changed:
		case <-time.After(again):
		}
	}
}

// leave removes the addresses if this was the last replica.
func (w *Writer) leave(ctx context.Context) {
	if !w.settings.Clear {
		return
	}
	others, err := w.finder.others(ctx)
	if err != nil {
		w.settings.Log.Warn("whether other replicas run can't be told", "error", err, "effect", "the status of Ingresses stays as it is")
		return
	}
	if others {
		w.settings.Log.Info("the status of Ingresses stays: there are other replicas, or several addresses")
		return
	}
	w.want(addresses{})
	w.settings.Log.Info("removing the addresses from the status of Ingresses", "ingresses", w.left())
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() { w.write(ctx, false) })
	}
	group.Wait()
}

// want says what Ingresses are to show, nil for nothing to be written.
func (w *Writer) want(wanted addresses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = wanted
	clear(w.behind)
	if wanted == nil {
		clear(w.appeared)
		return
	}
	for name, shown := range w.shown {
		if r := w.resting[name]; !shown.equal(wanted) && (r == nil || r.over) {
			w.behind[name] = struct{}{}
		}
	}
	w.wake()
}

// left is the number of Ingresses that wait.
func (w *Writer) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.behind) + len(w.appeared)
}

// settle takes an Ingress off what is to be looked at.
func (w *Writer) settle(name types.NamespacedName) {
	delete(w.behind, name)
	delete(w.appeared, name)
	w.wakeUp(name)
}

// wake wakes as many as there is work for.
func (w *Writer) wake() {
	for range min(len(w.behind)+len(w.appeared), parallel) {
		select {
		case w.filled <- struct{}{}:
		default:
			return
		}
	}
}
