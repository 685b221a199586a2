package reports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

// minInterval is the time between two messages of an edge that are taken: others wait in its connection.
const minInterval = 50 * time.Millisecond

// An Edge is what a control knows of one that is connected.
type Edge struct {
	// Name is by its credentials, and by what it says if Edges have Named.
	Name  string
	Group string
	// Since is when it connected, and At when its Status came, zero if there is none yet.
	Since, At time.Time
	// Status is what it says. Its name is not checked.
	Status Status
}

// Edges are those of a control that report. Its methods may be called by several goroutines.
type Edges struct {
	// Named is the name to show of an edge, by that of its credentials and the one that it says. It is for credentials
	// that several edges share, and nil if each has its own.
	Named func(name, said string) string
	// Sees reports whether the edges of a group get a unit. They are asked about no other one, and nothing is believed
	// of requests for hosts that they don't get. If it is nil, they get all.
	Sees func(group string, key unit.Key) bool

	// identify says who has opened a stream, by its credentials.
	identify func(context.Context) (name, group string, err error)

	mu    sync.Mutex
	edges map[*connection]struct{}
	// requests are those of all edges since the start, by host.
	requests map[string]Counts
	asked    int64
}

// NewEdges returns Edges of which none is connected.
func NewEdges(identify func(context.Context) (name, group string, err error)) *Edges {
	return &Edges{identify: identify, edges: map[*connection]struct{}{}, requests: map[string]Counts{}}
}

// Register adds the service to a server.
func (e *Edges) Register(to grpc.ServiceRegistrar) { to.RegisterService(description(), e) }

// A connection is the stream of an edge.
type connection struct {
	stream grpc.ServerStream
	// sending is held while a message is sent.
	sending sync.Mutex
	// name is that of its credentials.
	name string
	Edge
	// waiting are the questions without an answer.
	waiting map[int64]chan answer
}

// report takes what an edge says until its stream ends.
func (e *Edges) report(stream grpc.ServerStream) error {
	name, group, err := e.identify(stream.Context())
	if err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	c := &connection{stream: stream, name: name, Edge: Edge{Name: name, Group: group, Since: time.Now()}, waiting: map[int64]chan answer{}}
	e.mu.Lock()
	e.edges[c] = struct{}{}
	e.mu.Unlock()
	defer e.gone(c)
	slow := time.NewTicker(minInterval)
	defer slow.Stop()
	for {
		var message fromEdge
		if err := receive(stream, &message); err != nil {
			return err
		}
		e.take(c, message)
		select {
		case <-slow.C:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

func (e *Edges) gone(c *connection) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.edges, c)
	for _, to := range c.waiting {
		close(to)
	}
	c.waiting = nil
}

func (e *Edges) take(c *connection, message fromEdge) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := message.Status; s != nil {
		s.bound()
		for host, counts := range s.Requests {
			if host == "" || e.sees(c.Group, unit.Host.Key(host)) {
				e.count(host, counts)
			}
		}
		s.Requests = nil
		c.Status, c.At = *s, time.Now()
		if e.Named != nil {
			c.Name = e.Named(c.name, s.Name)
		}
	}
	if a := message.Answer; a != nil && c.waiting[a.Number] != nil {
		c.waiting[a.Number] <- *a
		delete(c.waiting, a.Number)
	}
}

// maxCounted bounds the hosts whose requests are counted: an edge may name any.
const maxCounted = 200_000

func (e *Edges) count(host string, more Counts) {
	counts, known := e.requests[host]
	if !known && len(e.requests) >= maxCounted {
		return
	}
	for i := range counts {
		counts[i] += more[i]
	}
	e.requests[host] = counts
}

// Requests are those that edges have served since the start of this control, by host.
func (e *Edges) Requests() map[string]Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	requests := make(map[string]Counts, len(e.requests))
	for host, counts := range e.requests {
		requests[host] = counts
	}
	return requests
}

// List are the edges that are connected, by name.
func (e *Edges) List() []Edge {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]Edge, 0, len(e.edges))
	for c := range e.edges {
		list = append(list, c.Edge)
	}
	slices.SortFunc(list, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.Since.Compare(b.Since)) })
	return list
}

// An Answer is what the workers of an edge's NGINX have, or why that is not known.
type Answer struct {
	Edge     string
	Holdings []dataplane.Holding
	Err      error
}

// Ask asks all edges at once what the workers of their NGINX are, and which versions of units they have: at most
// MaxUnits. Those that have not answered when ctx ends have an error. Those that get none of the units are left out.
func (e *Edges) Ask(ctx context.Context, units []unit.Key) []Answer {
	type asked struct {
		*connection
		name  string
		since time.Time
		own   []unit.Key
	}
	e.mu.Lock()
	edges := make([]asked, 0, len(e.edges))
	for c := range e.edges {
		own := slices.DeleteFunc(slices.Clone(units), func(key unit.Key) bool { return !e.sees(c.Group, key) })
		if len(own) > 0 || len(units) == 0 {
			edges = append(edges, asked{c, c.Name, c.Since, own})
		}
	}
	e.mu.Unlock()
	slices.SortFunc(edges, func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.name, b.name), a.since.Compare(b.since))
	})
	answers := make([]Answer, len(edges))
	var group sync.WaitGroup
	for i, edge := range edges {
		group.Go(func() {
			holdings, err := e.ask(ctx, edge.connection, edge.own)
			answers[i] = Answer{edge.name, inOrder(holdings, edge.own, units), err}
		})
	}
	group.Wait()
	return answers
}

func (e *Edges) sees(group string, key unit.Key) bool { return e.Sees == nil || e.Sees(group, key) }

// inOrder has what an edge says of its own units in the order of all that were asked for. Those that are not its own are
// empty.
func inOrder(holdings []dataplane.Holding, own, units []unit.Key) []dataplane.Holding {
	for i, h := range holdings {
		if len(h.Units) != len(own) || len(own) == len(units) {
			continue
		}
		all := make([]dataplane.Unit, len(units))
		for at, key := range own {
			all[slices.Index(units, key)] = h.Units[at]
		}
		holdings[i].Units = all
	}
	return holdings
}

var (
	errGone   = errors.New("the edge has gone")
	errSilent = errors.New("the edge does not answer")
)

func (e *Edges) ask(ctx context.Context, c *connection, units []unit.Key) ([]dataplane.Holding, error) {
	if len(units) > MaxUnits {
		return nil, fmt.Errorf("%d units are asked for: must be at most %d", len(units), MaxUnits)
	}
	to := make(chan answer, 1)
	e.mu.Lock()
	if c.waiting == nil {
		e.mu.Unlock()
		return nil, errGone
	}
	e.asked++
	number := e.asked
	c.waiting[number] = to
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(c.waiting, number)
	}()
	sent := make(chan error, 1)
	go func() {
		c.sending.Lock()
		defer c.sending.Unlock()
		sent <- send(c.stream, question{number, units})
	}()
	for {
		select {
		case <-ctx.Done():
			return nil, errSilent
		case err := <-sent:
			if err != nil {
				return nil, errGone
			}
			sent = nil
		case a, ok := <-to:
			if !ok {
				return nil, errGone
			}
			if a.Problem != "" {
				return nil, errors.New(cut(a.Problem))
			}
			return a.Holdings, nil
		}
	}
}
