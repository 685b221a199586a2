// Package follow runs jobs that fetch objects, each again when it is due, and
// queues the results as changes.
//
// It knows when to run which job. The jobs know what to fetch, and from where.
package follow

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// A Job fetches one object. Its methods are called by one goroutine at a time.
type Job interface {
	// Owner groups jobs: those of one owner share a part of the slots.
	Owner() string
	// Fetch fetches the object once.
	Fetch(ctx context.Context) Answer
}

// A Knowing is a Job that may know the answer without fetching. It needs no slot
// then.
type Knowing interface {
	Known() (answer Answer, known bool)
}

// An Answer is the result of a Job.
type Answer struct {
	// Object is the newest version. If it is nil, the last one stays, unless it
	// is Gone.
	Object metav1.Object
	Gone   bool
	// Open answers are not final: calls of Subscribe go on waiting.
	Open bool
	// Pause is when to fetch again; 0 means when Again is called.
	Pause time.Duration
	// Err is why there is no newer version.
	Err error
}

// Slots is how many jobs fetch at a time. Slow jobs must not delay the others:
// jobs that had an answer, new ones, and those that failed the last time have
// slots of their own, and one owner gets at most a quarter of each.
type Slots struct{ Known, New, Failed int }

// Settings are those of a Follower.
type Settings struct {
	// Name is for log lines.
	Name  string
	Slots Slots
	// Queue closes the channels that Subscribe returned.
	Queue *source.Queue
	// Changed is called with each change. It must not wait.
	Changed func(object metav1.Object, deleted bool)
	Log     *slog.Logger
}

// A Follower runs the jobs of its subscriptions.
type Follower[Name comparable] struct {
	settings             Settings
	known, fresh, failed *limiter

	mu            sync.Mutex
	subscriptions map[Name]*subscription[Name]
	// ctx is that of Run, nil while it does not run.
	ctx   context.Context
	group sync.WaitGroup
}

// A subscription is a Job that runs until it is removed.
type subscription[Name comparable] struct {
	name Name
	job  Job
	// cancel ends the job; nil while there is nothing to fetch.
	cancel context.CancelFunc
	// again makes the job fetch as soon as possible.
	again chan struct{}
	// object is the last one that was delivered, nil if there is none.
	object metav1.Object
	// answered is set once there is an answer, until Again is called.
	answered bool
	pending  []*pending
}

// A pending is a call of Subscribe that waits for jobs.
type pending struct {
	left int
	done chan struct{}
}

// New makes a Follower.
func New[Name comparable](s Settings) *Follower[Name] {
	return &Follower[Name]{
		settings: s,
		known:    newLimiter(s.Slots.Known), fresh: newLimiter(s.Slots.New), failed: newLimiter(s.Slots.Failed),
		subscriptions: map[Name]*subscription[Name]{},
	}
}

// Subscribe runs a new job for each added name without one, and ends those of the
// removed names. The channel is closed once each of the added names has an
// answer, and that is delivered.
func (f *Follower[Name]) Subscribe(added, removed []Name, job func(Name) Job) (delivered <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range removed {
		if w := f.subscriptions[name]; w != nil {
			delete(f.subscriptions, name)
			if w.cancel != nil {
				w.cancel()
			}
			f.put(w, Answer{Gone: true})
		}
	}
	all := &pending{done: make(chan struct{})}
	for _, name := range added {
		w := f.subscriptions[name]
		if w == nil {
			w = &subscription[Name]{name: name, job: job(name), again: make(chan struct{}, 1)}
			f.subscriptions[name] = w
			f.start(w)
		}
		if !w.answered {
			all.left++
			w.pending = append(w.pending, all)
		}
	}
	if all.left == 0 {
		f.settings.Queue.CloseDelivered(all.done)
	}
	return all.done
}

// Again makes the job of a name fetch as soon as possible.
func (f *Follower[Name]) Again(name Name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.subscriptions[name]; w != nil {
		f.fetchAgain(w)
	}
}

// AllAgain makes all jobs fetch as soon as possible.
func (f *Follower[Name]) AllAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.subscriptions {
		f.fetchAgain(w)
	}
}

func (f *Follower[Name]) fetchAgain(w *subscription[Name]) {
	w.answered = false
	if w.cancel == nil {
		f.start(w)
		return
	}
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// Run runs the jobs until ctx ends. It must be called once only.
func (f *Follower[Name]) Run(ctx context.Context) {
	f.mu.Lock()
	f.ctx = ctx
	for _, w := range f.subscriptions {
		f.start(w)
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.ctx = nil
	f.mu.Unlock()
	f.group.Wait()
}

// start starts a job, unless Run is still to be called, which does it.
func (f *Follower[Name]) start(w *subscription[Name]) {
	if f.ctx == nil {
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	w.cancel = cancel
	f.group.Go(func() {
		defer cancel()
		f.follow(ctx, w)
	})
}

// follow runs a job whenever it is due, until it needs no further run or ctx
// ends.
func (f *Follower[Name]) follow(ctx context.Context, w *subscription[Name]) {
	turn := f.fresh
	for {
		answer, ok := ask(ctx, turn, w.job)
		if !ok {
			return
		}
		turn = f.known
		if answer.Err != nil {
			turn = f.failed
			f.settings.Log.Debug(f.settings.Name+": nothing new", "name", w.name, "error", answer.Err, "again_in", answer.Pause)
		}
		if !f.take(w, answer) {
			return
		}
		var due <-chan time.Time
		if answer.Pause > 0 {
			due = time.After(answer.Pause)
		}
		select {
		case <-due:
		case <-w.again:
		case <-ctx.Done():
			return
		}
	}
}

// ask gets an answer, unless ctx ends.
func ask(ctx context.Context, turn *limiter, job Job) (answer Answer, ok bool) {
	if knowing, ok := job.(Knowing); ok {
		if answer, known := knowing.Known(); known {
			return answer, ctx.Err() == nil
		}
	}
	release := turn.acquire(ctx, job.Owner())
	if release == nil {
		return Answer{}, false
	}
	defer release()
	answer = job.Fetch(ctx)
	return answer, ctx.Err() == nil
}

// take processes an answer. It reports whether the job goes on.
func (f *Follower[Name]) take(w *subscription[Name], answer Answer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subscriptions[w.name] != w {
		return false
	}
	f.put(w, answer)
	if answer.Pause == 0 && len(w.again) == 0 {
		w.cancel = nil
		return false
	}
	return true
}

// put queues a change, and ends the calls that wait for it.
func (f *Follower[Name]) put(w *subscription[Name], answer Answer) {
	was := w.object
	switch {
	case answer.Gone && was != nil:
		w.object = nil
		f.settings.Changed(was, true)
	case answer.Object != nil && !reflect.DeepEqual(was, answer.Object):
		w.object = answer.Object
		f.settings.Changed(answer.Object, false)
	}
	if answer.Open {
		return
	}
	w.answered = true
	for _, waiting := range w.pending {
		if waiting.left--; waiting.left == 0 {
			f.settings.Queue.CloseDelivered(waiting.done)
		}
	}
	w.pending = nil
}
