// Package follow fetches what is wanted, again and again, and queues what comes
// of it as changes.
//
// It knows when something is fetched, and which waits for which. What is
// fetched, and from where, is for the jobs that sources hand in.
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

// A Job is one thing that is wanted. Its methods are called by one goroutine at
// a time.
type Job interface {
	// Owner names what shares a part of the slots with jobs of the same owner.
	Owner() string
	// Fetch fetches it once.
	Fetch(ctx context.Context) Answer
}

// A Knowing is a Job that may have an answer without fetching, and so without
// waiting for a slot.
type Knowing interface {
	Known() (answer Answer, known bool)
}

// An Answer is what came of a Job.
type Answer struct {
	// Object is what there is now. With nil, what there was stays, unless it is
	// Gone.
	Object metav1.Object
	Gone   bool
	// Open leaves those waiting that wait for the first answer.
	Open bool
	// Pause is when to fetch again, not before Again if it is 0.
	Pause time.Duration
	// Err says why there is nothing newer.
	Err error
}

// Slots say how many jobs fetch at a time. What takes long must not keep the rest
// waiting: jobs that had an answer, those that are new, and those that failed
// the last time do not share their slots, and one owner gets a quarter of each.
type Slots struct{ Known, New, Failed int }

// Settings say what a Follower is for.
type Settings struct {
	// Name stands in log lines.
	Name  string
	Slots Slots
	// Queue takes the changes, unless Changed is set, and closes the channels
	// that Want returned.
	Queue *source.Queue
	// Changed, if set, is called with what changed. It must not wait.
	Changed func(object metav1.Object, deleted bool)
	Log     *slog.Logger
}

// A Follower runs the jobs that are wanted.
type Follower[Name comparable] struct {
	settings             Settings
	known, fresh, failed *limiter

	mu            sync.Mutex
	subscriptions map[Name]*subscription[Name]
	// ctx is that of Run, nil while it does not run.
	ctx   context.Context
	group sync.WaitGroup
}

// A wanted is a Job that is run again and again.
type subscription[Name comparable] struct {
	name Name
	job  Job
	// cancel ends its run, nil while it is idle; then nothing is to be fetched.
	cancel context.CancelFunc
	// again has it fetched as soon as it can be.
	again chan struct{}
	// object is what was last delivered, nil if nothing was.
	object metav1.Object
	// answered is set once there was an answer, until it is to be fetched again.
	answered bool
	pending  []*pending
}

// A waiting is the number of jobs that a call of Want waits for.
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

// Want runs a new job for each added name that is not wanted yet, and ends those
// of the removed ones. The channel is closed once each of the added ones was
// answered, and what came of it delivered.
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

// Again fetches what is wanted under a name as soon as it can be.
func (f *Follower[Name]) Again(name Name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.subscriptions[name]; w != nil {
		f.fetchAgain(w)
	}
}

// AllAgain does the same for everything that is wanted.
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

// Run runs what is wanted until ctx ends. It must be called once only.
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

// start runs a job, or leaves that to Run.
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

// follow fetches one thing whenever that is due, until nothing is, or ctx ends.
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
	if !turn.acquire(ctx, job.Owner()) {
		return Answer{}, false
	}
	defer turn.release(job.Owner())
	answer = job.Fetch(ctx)
	return answer, ctx.Err() == nil
}

// take takes an answer. It reports whether the job goes on.
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

// put queues what is new, and ends the wait for it.
func (f *Follower[Name]) put(w *subscription[Name], answer Answer) {
	was := w.object
	switch {
	case answer.Gone && was != nil:
		w.object = nil
		f.changed(was, true)
	case answer.Object != nil && !reflect.DeepEqual(was, answer.Object):
		w.object = answer.Object
		f.changed(answer.Object, false)
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

func (f *Follower[Name]) changed(object metav1.Object, deleted bool) {
	if f.settings.Changed != nil {
		f.settings.Changed(object, deleted)
		return
	}
	f.settings.Queue.Put(source.Change{Object: object, Deleted: deleted})
}
