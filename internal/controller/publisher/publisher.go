// Package publisher is the half of a controller that has no NGINX: it publishes what was built, for
// edges.
//
// A single goroutine calls it, and runs its events between two changes. It must not know how edges
// are reached, and what they make of units.
package publisher

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/controller/event"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan/stapling"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A Publisher publishes units.
type Publisher struct {
	store *publish.Store
	log   *slog.Logger
	// pushed is called when all edges that are there have everything.
	pushed func(all, held bool)

	// changes are those since the last Apply, by their units.
	changes map[unit.Key]publish.Change
	// expected are hosts that are to be built again, and waiting what does not go out before them.
	expected map[string]struct{}
	waiting  map[unit.Key]waiting
	names    map[unit.Kind]map[string]struct{}
	globals  model.Globals
	// shown are the certificates in use, shows those of each unit, and users how many units show each.
	shown *stapling.Certificates
	shows map[unit.Key][]model.Certificate
	users map[string]int

	edges edges

	events  event.Events
	ready   atomic.Bool
	serving chan struct{}
	leaving atomic.Bool
}

// New returns a Publisher that has published nothing.
func New(store *publish.Store, log *slog.Logger) *Publisher {
	return &Publisher{
		store: store, log: log, pushed: func(bool, bool) {},
		changes: map[unit.Key]publish.Change{}, expected: map[string]struct{}{}, waiting: map[unit.Key]waiting{},
		names: map[unit.Kind]map[string]struct{}{}, shown: stapling.New(), shows: map[unit.Key][]model.Certificate{}, users: map[string]int{}, edges: edges{members: map[int64]*member{}, lagging: map[string]lag{}},
		events: event.New(), serving: make(chan struct{}),
	}
}

// Notify sets what is called when all edges that are there have everything, but for slow ones.
func (p *Publisher) Notify(pushed func(all, held bool)) { p.pushed = pushed }

// Set takes what was built, for the next Apply. A certificate that was generated is not published: each edge
// generates its own.
func (p *Publisher) Set(built unit.Built) []finding.Finding {
	if c, is := built.Model.(model.Certificate); is && c.Secret == "" {
		built.Model = nil
	}
	resources, err := wire.Encode(built)
	if err != nil {
		// Only values of features that are not plain data, which their tests find. What is not published is
		// closed, and not as it was.
		p.log.Error("a unit can't be published", "unit", built.Key, "error", err)
		built.Model = nil
	}
	p.note(built)
	c := publish.Change{Key: built.Key, Namespace: wire.Namespace(built), Resources: resources}
	if hosts := p.waits(built); len(hosts) > 0 {
		p.waiting[c.Key] = waiting{c, hosts}
	} else {
		p.changes[c.Key] = c
		delete(p.waiting, c.Key)
	}
	if built.Kind == unit.Host {
		p.built(built.Name)
	}
	return nil
}

// note keeps what is asked for later.
func (p *Publisher) note(built unit.Built) {
	list := p.names[built.Kind]
	if list == nil {
		list = map[string]struct{}{}
		p.names[built.Kind] = list
	}
	if built.Model == nil {
		delete(list, built.Name)
	} else {
		list[built.Name] = struct{}{}
	}
	switch built.Kind {
	case unit.Globals:
		p.globals, _ = built.Model.(model.Globals)
		p.shown.SetStapling(p.globals.Process.Stapling)
	case unit.DefaultCertificate:
		c, _ := built.Model.(model.Certificate)
		p.shown.SetDefault(c)
	case unit.Name, unit.Patterns:
		p.show(built.Key, built.Certificates)
	}
}

// show notes which certificates a unit shows.
func (p *Publisher) show(key unit.Key, certificates []model.Certificate) {
	for _, c := range certificates {
		p.users[c.Hash]++
		p.shown.Add(c)
	}
	for _, c := range p.shows[key] {
		if p.users[c.Hash]--; p.users[c.Hash] == 0 {
			delete(p.users, c.Hash)
			p.shown.Remove(c.Hash)
		}
	}
	p.shows[key] = certificates
	if certificates == nil {
		delete(p.shows, key)
	}
}

// waiting is a change that waits for hosts.
type waiting struct {
	change publish.Change
	hosts  map[string]struct{}
}

// waits are the hosts that are still to be built before a unit goes out: for a name its host, if that is
// new, and for the end of a backend all hosts that may still name it.
func (p *Publisher) waits(built unit.Built) map[string]struct{} {
	switch m := built.Model.(type) {
	case nil:
		if built.Kind == unit.Backend {
			return maps.Clone(p.expected)
		}
	case model.Name:
		_, expected := p.expected[m.Host]
		_, known := p.names[unit.Host][m.Host]
		if expected && !known {
			return map[string]struct{}{m.Host: {}}
		}
	}
	return nil
}

// Expect notes that a host is to be set again, later than what changed with it.
func (p *Publisher) Expect(host string) { p.expected[host] = struct{}{} }

// built takes along what waited for a host.
func (p *Publisher) built(host string) {
	delete(p.expected, host)
	for key, w := range p.waiting {
		if delete(w.hosts, host); len(w.hosts) == 0 {
			p.changes[key] = w.change
			delete(p.waiting, key)
		}
	}
}

// Start publishes what was set. From then on edges are served.
func (p *Publisher) Start(ctx context.Context) error {
	p.Apply(ctx)
	p.ready.Store(true)
	close(p.serving)
	return nil
}

// Apply publishes what was set since the last time.
func (p *Publisher) Apply(context.Context) {
	at := p.store.Put(slices.Collect(maps.Values(p.changes))...)
	clear(p.changes)
	if p.edges.publish(at) {
		p.pushed(true, false)
	}
}

// Connected notes that an edge has opened a stream.
func (p *Publisher) Connected(stream int64, edge string) {
	p.log.Info("an edge has connected", "edge", edge, "stream", stream)
	p.edges.add(stream, edge)
}

// Acknowledged notes that the edge of a stream has all changes up to a version of the Store.
func (p *Publisher) Acknowledged(stream int64, at uint64, rejected error) {
	if rejected != nil {
		p.log.Error("an edge can't serve everything", "stream", stream, "error", rejected)
	}
	if p.edges.set(stream, at) {
		p.notePushed()
	}
}

// Gone notes the end of a stream.
func (p *Publisher) Gone(stream int64) {
	if p.edges.remove(stream) {
		p.notePushed()
	}
}

// notePushed has it reported that no edge is waited for, unless there is another change by then.
func (p *Publisher) notePushed() {
	p.events.Post(func(context.Context) {
		if p.edges.hasAll() {
			p.pushed(true, false)
		}
	})
}

// Edges are the numbers of edges that are connected: of those that have all changes, and of those that lack some.
func (p *Publisher) Edges() (current, behind int) { return p.edges.numbers() }

// Events are to be run between two changes.
func (p *Publisher) Events() <-chan func(context.Context) { return p.events.Events() }

// lookInterval is that of looks for slow edges.
const lookInterval = time.Second

// Run looks for edges that take nothing until ctx ends: the status of Ingresses would wait for them. wait ends the
// events.
func (p *Publisher) Run(ctx context.Context) (wait func()) {
	go func() {
		look := time.NewTicker(lookInterval)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-look.C:
				if p.edges.look(now) {
					p.notePushed()
				}
			}
		}
	}()
	return p.events.End
}

// Check returns why edges are not served, or nil if they are.
func (p *Publisher) Check(context.Context) error {
	switch {
	case p.leaving.Load():
		return errors.New("shutting down")
	case !p.ready.Load():
		return errors.New("the first load is not complete")
	}
	return nil
}

// Ready reports whether the first load is published.
func (p *Publisher) Ready() bool { return p.ready.Load() }

// Serving is closed when the first load is published.
func (p *Publisher) Serving() <-chan struct{} { return p.serving }

// ShutdownTimeout is 0: there are no connections of clients to finish.
func (p *Publisher) ShutdownTimeout() time.Duration { return 0 }

// Leave has health checks fail.
func (p *Publisher) Leave(context.Context, time.Duration) { p.leaving.Store(true) }

// Globals are those that were set last.
func (p *Publisher) Globals() model.Globals { return p.globals }

// CanListen is nil: what an edge can listen on, it finds out itself.
func (p *Publisher) CanListen(netip.Addr) error { return nil }

// Count is the number of units of a kind.
func (p *Publisher) Count(kind unit.Kind) int { return len(p.names[kind]) }

// AppliedNames are the names of the units of a kind that are published, sorted.
func (p *Publisher) AppliedNames(kind unit.Kind) []string {
	return slices.Sorted(maps.Keys(p.names[kind]))
}

// Rebound is empty: edges bound the profiles.
func (p *Publisher) Rebound() []string { return nil }

// BoundProfiles changes nothing: edges bound the profiles.
func (p *Publisher) BoundProfiles(*model.Host) []finding.Finding { return nil }

// DrainOCSPChanges returns the certificates whose OCSP responses are wanted from now on, and the hashes of
// those of which they no longer are, since the last call.
func (p *Publisher) DrainOCSPChanges() (added []model.Certificate, removed []string) {
	return p.shown.Drain()
}
