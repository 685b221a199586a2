// Package pki is the source of what certificate authorities say about
// certificates: the certificates of issuers, and OCSP answers. It fetches what
// it is told to want, and delivers it as objects.
//
// It knows certificates, OCSP and the URLs in certificates. It must not know
// which certificate is shown for what.
//
// Whoever may write a Secret names the URLs. So all fetches are bounded in
// number, time and size, in all and for one owner, and lead neither to this
// machine nor to its neighbours; what comes back is checked, and never told: see
// docs/decisions/0012-certificate-authorities.md.
package pki

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// Settings say how is fetched.
type Settings struct {
	// AllowLocal lets URLs lead to loopback, link-local and unspecified
	// addresses.
	AllowLocal bool
	// Least is the shortest time between two questions about one certificate,
	// a minute if 0.
	Least time.Duration
	Log   *slog.Logger
}

// How much is fetched at a time. What takes long must not keep the rest
// waiting: what there was before, what is new, and what failed the last time do
// not share their slots, and one owner gets a quarter of each.
const (
	knownAtOnce  = 16
	newAtOnce    = 64
	failedAtOnce = 16
)

// A quest is one thing that is wanted.
type quest interface {
	// owner is whose quests wait for each other.
	owner() string
	// ask fetches it once. It returns what there is to deliver now, nil for
	// nothing, and when to ask again, never if that is 0. An error says why
	// there is nothing newer.
	ask(ctx context.Context) (object metav1.Object, pause time.Duration, err error)
}

// A follower fetches what is wanted, again and again.
type follower struct {
	log                  *slog.Logger
	known, fresh, failed *lane

	mu     sync.Mutex
	wanted map[string]*wanted
	// started are those that are new, changes what is to be told.
	started []*wanted
	changes []source.Change
	filled  chan struct{}
}

// A wanted is a quest that goes on.
type wanted struct {
	name  string
	quest quest
	// cancel ends it, nil before it began.
	cancel context.CancelFunc
	// object is what was last delivered, nil if nothing was.
	object metav1.Object
}

func newFollower(log *slog.Logger) *follower {
	return &follower{
		log:   log,
		known: newLane(knownAtOnce), fresh: newLane(newAtOnce), failed: newLane(failedAtOnce),
		wanted: map[string]*wanted{}, filled: make(chan struct{}, 1),
	}
}

func (f *follower) want(added map[string]quest, removed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range removed {
		if w := f.wanted[name]; w != nil {
			delete(f.wanted, name)
			if w.cancel != nil {
				w.cancel()
			}
			if w.object != nil {
				f.changes = append(f.changes, source.Change{Object: w.object, Deleted: true})
			}
		}
	}
	for name, q := range added {
		if f.wanted[name] == nil {
			w := &wanted{name: name, quest: q}
			f.wanted[name] = w
			f.started = append(f.started, w)
		}
	}
	f.fill()
}

func (f *follower) fill() {
	select {
	case f.filled <- struct{}{}:
	default:
	}
}

// Run fetches what is wanted until ctx ends. It delivers nothing before
// something is.
func (f *follower) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for {
		if changes := f.take(ctx, &group); len(changes) > 0 {
			deliver(ctx, changes)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.filled:
		}
	}
}

// take starts what is new and returns what is to be told.
func (f *follower) take(ctx context.Context, group *sync.WaitGroup) []source.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.started {
		if f.wanted[w.name] != w {
			continue
		}
		following, cancel := context.WithCancel(ctx)
		w.cancel = cancel
		group.Go(func() { f.follow(following, w) })
	}
	changes := f.changes
	f.started, f.changes = nil, nil
	return changes
}

// follow fetches one thing whenever that is due, until ctx ends.
func (f *follower) follow(ctx context.Context, w *wanted) {
	turn, owner := f.fresh, w.quest.owner()
	for {
		if !turn.enter(ctx, owner) {
			return
		}
		object, pause, err := w.quest.ask(ctx)
		turn.leave(owner)
		if ctx.Err() != nil {
			return
		}
		f.put(w, object)
		turn = f.known
		if err != nil {
			turn = f.failed
			f.log.Debug("pki: nothing new", "name", w.name, "error", err, "again_in", pause)
		}
		if pause == 0 {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// put delivers an object if it is new.
func (f *follower) put(w *wanted, object metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wanted[w.name] != w || object == nil || reflect.DeepEqual(w.object, object) {
		return
	}
	w.object = object
	f.changes = append(f.changes, source.Change{Object: object})
	f.fill()
}

// The time between two fetches that fail grows from firstPause to lastPause.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Hour
)

// backoff is how long to wait after that many failures in a row. What failed
// together need not be asked for together again.
func backoff(failures int) time.Duration {
	pause := min(firstPause<<min(failures-1, 10), lastPause)
	return pause + rand.N(pause/4)
}
