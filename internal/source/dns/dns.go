// Package dns is the source that says what DNS names stand for: it looks up
// the names that it is told to want, and delivers the addresses as objects.
//
// It knows resolv.conf(5), hosts(5) and DNS. It must not know what names are
// for. Names are resolved as the C library does it: /etc/hosts first, then the
// servers with the search domains, A before AAAA, and AAAA only where there is
// no A.
//
// A name is looked up again when its time to live ends, and at no other time.
// Where there is none, it is tried again soon, and then less often; a name that
// nobody wanted any more and is wanted again is looked up at once. While no
// resolver can say what a name stands for, the addresses that it last stood for
// stay, for a day at most.
package dns

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/source"
)

// Settings say how names are looked up.
type Settings struct {
	// ResolvConf and Hosts are the paths of the system's files, read anew for
	// each lookup. One that is missing is as good as empty.
	ResolvConf, Hosts string
	// Port is the name servers' port, 53 if 0.
	Port uint16
	// AllowLocal delivers loopback, link-local and unspecified addresses among
	// the others, and not as refused ones.
	AllowLocal bool
	Log        *slog.Logger
}

// System is the settings of the system that this runs on.
func System(allowLocal bool, log *slog.Logger) Settings {
	return Settings{ResolvConf: "/etc/resolv.conf", Hosts: "/etc/hosts", AllowLocal: allowLocal, Log: log}
}

// How many names are looked up at a time. One that nobody answers for takes
// seconds, and must not keep the others waiting: names that have addresses,
// those that were not looked up yet, and those that failed the last time do not
// share their slots.
const (
	knownAtOnce  = 128
	newAtOnce    = 64
	failedAtOnce = 16
)

// A Source looks up names.
type Source struct {
	settings Settings
	// known, fresh and failed have the slots of names by their last lookup.
	known, fresh, failed chan struct{}

	mu    sync.Mutex
	names map[string]*name
	// started are new names, changes and settled what is to be told.
	started []*name
	changes []source.Change
	settled []chan struct{}
	filled  chan struct{}
}

// A name is one that is wanted.
type name struct {
	text string
	// cancel ends its lookups, nil before they began.
	cancel context.CancelFunc
	// object is what was last delivered, nil if nothing was.
	object  *source.Addresses
	waiting []*settlement
}

// A settlement is the number of names that must still be looked up before a
// call of Want is settled.
type settlement struct {
	left int
	done chan struct{}
}

// New makes a Source.
func New(settings Settings) *Source {
	return &Source{
		settings: settings,
		known:    make(chan struct{}, knownAtOnce), fresh: make(chan struct{}, newAtOnce), failed: make(chan struct{}, failedAtOnce),
		names: map[string]*name{}, filled: make(chan struct{}, 1),
	}
}

// Want says which names are to be looked up from now on, and which no longer.
// The channel is closed once each of the added ones was looked up and what came
// of it delivered. A name that ends in a dot is absolute.
func (s *Source) Want(added, removed []string) (delivered <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range removed {
		if n := s.names[text]; n != nil {
			s.remove(n)
		}
	}
	all := &settlement{done: make(chan struct{})}
	for _, text := range added {
		n := s.names[text]
		if n == nil {
			n = &name{text: text}
			s.names[text] = n
			s.started = append(s.started, n)
		}
		if n.object == nil {
			all.left++
			n.waiting = append(n.waiting, all)
		}
	}
	if all.left == 0 {
		s.settled = append(s.settled, all.done)
	}
	s.fill()
	return all.done
}

func (s *Source) remove(n *name) {
	delete(s.names, n.text)
	if n.cancel != nil {
		n.cancel()
	}
	if n.object != nil {
		s.changes = append(s.changes, source.Change{Object: n.object, Deleted: true})
	}
	s.settle(n)
}

// settle ends the wait for a name.
func (s *Source) settle(n *name) {
	for _, waiting := range n.waiting {
		if waiting.left--; waiting.left == 0 {
			s.settled = append(s.settled, waiting.done)
		}
	}
	n.waiting = nil
}

func (s *Source) fill() {
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

// Run looks up what is wanted until ctx ends. It delivers nothing before
// something is.
func (s *Source) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for {
		changes, settled := s.take(ctx, &group)
		if len(changes) > 0 {
			deliver(ctx, changes)
		}
		for _, done := range settled {
			close(done)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.filled:
		}
	}
}

// take starts the lookups of new names and returns what is to be told.
func (s *Source) take(ctx context.Context, group *sync.WaitGroup) ([]source.Change, []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.started {
		if s.names[n.text] != n {
			continue
		}
		following, cancel := context.WithCancel(ctx)
		n.cancel = cancel
		group.Go(func() { s.follow(following, n) })
	}
	changes, settled := s.changes, s.settled
	s.started, s.changes, s.settled = nil, nil, nil
	return changes, settled
}

// follow looks a name up whenever that is due, until ctx ends.
func (s *Source) follow(ctx context.Context, n *name) {
	var h history
	for {
		slots := s.slots(h)
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		found := s.lookup(ctx, n.text, h.from)
		<-slots
		if ctx.Err() != nil {
			return
		}
		object, pause := h.take(n.text, found, time.Now())
		if !s.settings.AllowLocal {
			object.Addresses, object.Refused = sortOut(object.Addresses)
		}
		s.put(n, object)
		if h.failures > 0 {
			// Names that failed together need not be asked for together again.
			pause += rand.N(pause / 4)
			s.settings.Log.Debug("dns: no answer", "name", n.text, "problem", object.Problem, "error", found.err, "again_in", pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (s *Source) slots(h history) chan struct{} {
	switch {
	case h.failures > 0:
		return s.failed
	case h.answered.IsZero():
		return s.fresh
	}
	return s.known
}

// put delivers what a name stands for, if that is new.
func (s *Source) put(n *name, object *source.Addresses) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[n.text] != n {
		return
	}
	if was := n.object; was == nil || !slices.Equal(was.Addresses, object.Addresses) ||
		!slices.Equal(was.Refused, object.Refused) || was.Problem != object.Problem {
		n.object = object
		s.changes = append(s.changes, source.Change{Object: object})
	}
	s.settle(n)
	s.fill()
}
