// Package check is the source of the health of endpoints: it sends requests to the endpoints of
// its subscriptions, and delivers which of them are unhealthy, as one object for each backend.
//
// It knows HTTP and the health service of gRPC. It must not know what backends are used for, nor
// which addresses may be asked: it gets those that may.
//
// An endpoint counts as healthy until its checks have failed often enough in a row. Tenants
// choose the endpoints and how often they are asked. So checks are bounded in number, time and
// size, in all and per namespace: see docs/decisions/0027-health-checks.md.
package check

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/follow"
)

// knownAtOnce is the number of checks at a time of endpoints whose last check succeeded, and
// failedAtOnce that of the others, which may take as long as their timeout. A namespace has at
// most a quarter of each.
const (
	knownAtOnce  = 256
	failedAtOnce = 128
)

// slotTime is the shortest time for which a check takes its place. So at most 320 checks a second
// are made for a namespace, if they succeed, and 1,280 in all; a check takes about 0.2 ms of
// processor time. A namespace with more endpoints has longer intervals.
const slotTime = 200 * time.Millisecond

// pace is the shortest time between two changes of a backend's health. Endpoints that change
// all the time must not keep the controller busy.
const pace = time.Second

// Settings are those of a Source.
type Settings struct {
	// SlotTime and Pace replace the times above, unless they are 0.
	SlotTime, Pace time.Duration
	Log            *slog.Logger
}

// A Source checks endpoints.
type Source struct {
	settings Settings
	follower *follow.Follower[target]
	queue    *source.Queue
	prober   *prober

	succeeded, failed atomic.Int64

	mu       sync.Mutex
	backends map[string]*backend
	// users are the backends with a target, by their keys.
	users map[target][]string
	// unhealthy says why targets are unhealthy.
	unhealthy map[target]string
}

// A target is an endpoint and how it is checked. Backends of a namespace that have the same one
// share it.
type target struct {
	namespace string
	endpoint  netip.AddrPort
	check     source.HealthCheck
}

// String is for the log.
func (t target) String() string { return t.namespace + " " + t.endpoint.String() }

// A backend is one whose endpoints are checked.
type backend struct {
	source.Checked
	// delivered are the unhealthy endpoints that were delivered last, and last is when.
	delivered []source.UnhealthyEndpoint
	last      time.Time
	// waiting is set while a change waits for the pace.
	waiting bool
}

// New makes a Source without subscriptions.
func New(settings Settings) *Source {
	if settings.SlotTime == 0 {
		settings.SlotTime = slotTime
	}
	if settings.Pace == 0 {
		settings.Pace = pace
	}
	s := &Source{
		settings: settings, queue: source.NewQueue(), prober: newProber(),
		backends: map[string]*backend{}, users: map[target][]string{}, unhealthy: map[target]string{},
	}
	s.follower = follow.New[target](follow.Settings{
		Name: "check", Slots: follow.Slots{Known: knownAtOnce, New: 1, Failed: failedAtOnce},
		Queue: s.queue, Changed: s.changed, Log: settings.Log,
	})
	return s
}

// Run checks and delivers until ctx ends. It delivers nothing without a subscription.
func (s *Source) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	var group sync.WaitGroup
	group.Go(func() { s.follower.Run(ctx) })
	s.queue.Run(ctx, deliver, false)
	group.Wait()
	return nil
}

// Subscribe replaces what is checked of a backend. It must be called by one goroutine at a time.
func (s *Source) Subscribe(c source.Checked) {
	added, removed, changes := s.replace(c)
	if !changes {
		return
	}
	s.follower.Subscribe(added, removed, func(t target) follow.Job { return &checks{source: s, target: t} })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliver(c.Backend)
}

// replace returns the targets that no backend had before, and those that none has any more.
func (s *Source) replace(c source.Checked) (added, removed []target, changes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.backends[c.Backend]
	if was == nil && len(c.Endpoints) == 0 {
		return nil, nil, false
	}
	is := &backend{Checked: c}
	if was != nil {
		if was.Check == c.Check && was.Namespace == c.Namespace && slices.Equal(was.Endpoints, c.Endpoints) {
			return nil, nil, false
		}
		is.delivered, is.last = was.delivered, was.last
	}
	s.backends[c.Backend] = is
	for t := range is.targets {
		if len(s.users[t]) == 0 {
			added = append(added, t)
		}
		s.users[t] = append(s.users[t], c.Backend)
	}
	if was == nil {
		return added, nil, true
	}
	for t := range was.targets {
		users := s.users[t]
		i := slices.Index(users, c.Backend)
		if users = slices.Delete(users, i, i+1); len(users) > 0 {
			s.users[t] = users
			continue
		}
		delete(s.users, t)
		removed = append(removed, t)
	}
	return added, removed, true
}

// targets yields those of a backend, in the order of its endpoints.
func (b *backend) targets(yield func(target) bool) {
	for _, at := range b.Endpoints {
		if !yield(target{b.Namespace, at, b.Check}) {
			return
		}
	}
}

// A result is that of the checks of a target, as an object.
type result struct {
	metav1.ObjectMeta
	target target
	// why is empty for a healthy one.
	why string
}

// changed takes the result of a target.
func (s *Source) changed(object metav1.Object, deleted bool) {
	r := object.(*result)
	s.mu.Lock()
	defer s.mu.Unlock()
	if deleted || r.why == "" {
		delete(s.unhealthy, r.target)
	} else {
		s.unhealthy[r.target] = r.why
	}
	for _, key := range s.users[r.target] {
		s.deliverLater(key)
	}
}

// deliverLater delivers the health of a backend, as soon as its pace allows.
func (s *Source) deliverLater(key string) {
	b := s.backends[key]
	if b == nil || b.waiting {
		return
	}
	wait := time.Until(b.last.Add(s.settings.Pace))
	if wait <= 0 {
		s.deliver(key)
		return
	}
	b.waiting = true
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.backends[key] == b {
			b.waiting = false
			s.deliver(key)
		}
	})
}

// deliver delivers the health of a backend, if it differs from what was delivered.
func (s *Source) deliver(key string) {
	b := s.backends[key]
	object := &source.Health{ObjectMeta: metav1.ObjectMeta{Name: key}}
	for t := range b.targets {
		if why, ok := s.unhealthy[t]; ok {
			object.Unhealthy = append(object.Unhealthy, source.UnhealthyEndpoint{Address: t.endpoint, Why: why})
		}
	}
	if !slices.Equal(b.delivered, object.Unhealthy) {
		b.delivered, b.last = object.Unhealthy, time.Now()
		s.queue.Put(source.Change{Object: object, Deleted: len(object.Unhealthy) == 0})
	}
	if len(b.Endpoints) == 0 {
		delete(s.backends, key)
	}
}
