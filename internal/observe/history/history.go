// Package history remembers what changed lately: which objects, what was pushed because of
// them, and how long it took until NGINX served it.
//
// The controller reports to it, and the page for people shows it. It must not know what the
// changes mean. All its memory is bounded: who changes objects decides how many there are.
package history

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/unit"
)

// Bounds of what is kept: events, the objects and units that an event names, and the bytes of an
// error, which may have all that NGINX said.
const (
	maxEvents = 200
	maxNamed  = 20
	maxError  = 1000
)

// What an Event is about.
const (
	// Changed: objects changed.
	Changed = "change"
	// Reloaded: NGINX was reloaded, or rejected a configuration.
	Reloaded = "reload"
	// Restarted: NGINX ended and was started again.
	Restarted = "restart"
)

// An Event is something that happened.
type Event struct {
	ID   int       `json:"id"`
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	// Took is the time in seconds until NGINX served it, or that the reload took. It is
	// absent as long as that is going on.
	Took *float64 `json:"took,omitempty"`
	// Objects are those that changed, at most 20, and Total is their number.
	Objects []Object `json:"objects,omitempty"`
	Total   int      `json:"total,omitempty"`
	// Units are those that were pushed, at most 20, and Pushed is their number.
	Units  []Unit `json:"units,omitempty"`
	Pushed int    `json:"pushed,omitempty"`
	// Reason is why NGINX was reloaded, and Error why it was not.
	Reason     string `json:"reason,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Error      string `json:"error,omitempty"`

	// taken is the number of deliveries that are applied with it.
	taken int
}

// An Object is one that changed.
type Object struct {
	// Object is its kind, namespace and name, as in findings.
	Object  string `json:"object"`
	Deleted bool   `json:"deleted,omitempty"`
}

// A Unit is one that was pushed.
type Unit struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Deleted bool   `json:"deleted,omitempty"`
}

// A Log has the last events. Its methods may be called from several goroutines, and on nil,
// which remembers nothing.
type Log struct {
	now func() time.Time

	mu     sync.Mutex
	last   int
	events []*Event // the oldest first
	// reloaded is the last reload that succeeded.
	reloaded *Event
}

// New makes an empty Log.
func New() *Log { return &Log{now: time.Now} }

// Change notes an object that arrived at a time and affects units, of the deliveries up to a
// number.
func (l *Log) Change(taken int, arrived time.Time, object string, deleted bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.newest()
	if e == nil || e.taken != taken {
		e = l.add(Event{Kind: Changed, At: arrived, taken: taken})
	}
	if arrived.Before(e.At) {
		e.At = arrived
	}
	if e.Total++; len(e.Objects) < maxNamed {
		e.Objects = append(e.Objects, Object{object, deleted})
	}
}

// Push notes units that were pushed.
func (l *Log) Push(changes []unit.Change) {
	if l == nil || len(changes) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.newest()
	if e == nil || e.Took != nil {
		return // All is pushed again after a restart of NGINX, for example.
	}
	e.Pushed += len(changes)
	for _, c := range changes[:min(len(changes), maxNamed-len(e.Units))] {
		e.Units = append(e.Units, Unit{string(c.Kind), c.Name, c.Delete})
	}
}

// Apply notes that NGINX serves all deliveries up to a number.
func (l *Log) Apply(taken int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == Changed && e.Took == nil && e.taken <= taken {
			e.Took = seconds(l.now().Sub(e.At))
		}
	}
}

// Reload notes a reload of NGINX, or the error of one.
func (l *Log) Reload(reason string, generation int, took time.Duration, err error) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := Event{Kind: Reloaded, At: l.now().Add(-took), Took: seconds(took), Reason: reason, Generation: generation}
	if err != nil {
		e.Error = cut(err.Error())
	}
	if added := l.add(e); err == nil {
		l.reloaded = added
	}
}

// Restart notes that NGINX was started again.
func (l *Log) Restart() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(Event{Kind: Restarted, At: l.now()})
}

// Events are the last ones, the newest first.
func (l *Log) Events() []Event {
	list := []Event{}
	if l == nil {
		return list
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.events) {
		list = append(list, e.copied())
	}
	return list
}

// LastReload is the last one that succeeded, nil for none.
func (l *Log) LastReload() *Event {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reloaded == nil {
		return nil
	}
	e := l.reloaded.copied()
	return &e
}

// copied is the event as it is now.
func (e *Event) copied() Event {
	c := *e
	c.Objects, c.Units = slices.Clone(e.Objects), slices.Clone(e.Units)
	return c
}

// newest is the change that came last, nil for none.
func (l *Log) newest() *Event {
	for _, e := range slices.Backward(l.events) {
		if e.Kind == Changed {
			return e
		}
	}
	return nil
}

func (l *Log) add(e Event) *Event {
	l.last++
	e.ID = l.last
	if len(l.events) == maxEvents {
		l.events = slices.Delete(l.events, 0, 1)
	}
	l.events = append(l.events, &e)
	return &e
}

// cut shortens an error, without a broken character.
func cut(text string) string {
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
