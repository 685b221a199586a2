package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/link"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/xds"
)

// A fleet is edges without NGINX, in this process: each has a connection of its own, takes and acknowledges
// what it gets at once, and keeps versions alone.
type fleet struct {
	names *names
	edges []*simulated
	end   context.CancelFunc
	group sync.WaitGroup
	// expected is what is waited for, nil for nothing.
	expected atomic.Pointer[arrival]
	// broken is the last error of a connection.
	broken atomic.Pointer[error]
}

// A simulated edge follows a control.
type simulated struct {
	fleet      *fleet
	name       string
	connection *grpc.ClientConn
	end        context.CancelFunc
	// received and sent are bytes on its connections, with TLS, and payload those of resources.
	received, sent, payload atomic.Int64
	resources               atomic.Int64
	// cuts are how many it has taken.
	cuts atomic.Int64
	// hold, if it is not nil, is waited for before a cut is taken.
	hold chan struct{}

	mu sync.Mutex
	// has are the numbers of versions by those of names.
	has []int32
}

// An arrival is a change on its way: another version of a unit than before, or none.
type arrival struct {
	key unit.Key
	not string

	mu   sync.Mutex
	left map[*simulated]bool
	// first and last are when the first and the last edge had it, and done is closed then.
	first, last time.Time
	done        chan struct{}
}

// newFleet makes edges of a control, which do nothing yet.
func newFleet(p *edgePlace, number int) (*fleet, error) {
	f := &fleet{names: newNames()}
	for i := range number {
		e, err := f.add(p, fmt.Sprintf("edge-%03d", i))
		if err != nil {
			return nil, err
		}
		f.edges = append(f.edges, e)
	}
	return f, nil
}

func (f *fleet) add(p *edgePlace, name string) (*simulated, error) {
	pair, err := p.issue(name)
	if err != nil {
		return nil, err
	}
	e := &simulated{fleet: f, name: name}
	// All of it is as package link has it.
	const window = 1 << 20
	often := backoff.DefaultConfig
	often.MaxDelay = 5 * time.Second
	e.connection, err = grpc.NewClient("passthrough:///"+p.control, grpc.WithAuthority(link.ServerName), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13, ServerName: link.ServerName, RootCAs: link.Pool(p.authority.Certificate), Certificates: []tls.Certificate{pair},
		})),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: often, MinConnectTimeout: 10 * time.Second}),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(2*window),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return &counted{connection, e}, nil
		}))
	return e, err
}

// start has all edges follow.
func (f *fleet) start(ctx context.Context) {
	ctx, f.end = context.WithCancel(ctx)
	for _, e := range f.edges {
		f.follow(ctx, e)
	}
}

func (f *fleet) follow(ctx context.Context, e *simulated) {
	ctx, e.end = context.WithCancel(ctx)
	f.group.Go(func() { e.follow(ctx) })
}

// stop ends all edges.
func (f *fleet) stop() {
	if f.end != nil {
		f.end()
	}
	f.group.Wait()
	for _, e := range f.edges {
		e.connection.Close()
	}
}

// follow connects again, as often as an edge of Headgate does, until ctx ends.
func (e *simulated) follow(ctx context.Context) {
	const first, longest = 200 * time.Millisecond, 10 * time.Second
	pause := first
	for ctx.Err() == nil {
		began := time.Now()
		err := xds.Follow(ctx, discarding{e.connection, e}, e.name, e.held(), e.take)
		if ctx.Err() != nil {
			return
		}
		e.fleet.broken.Store(&err)
		if time.Since(began) > longest {
			pause = first
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, longest)
	}
}

func (e *simulated) take(ctx context.Context, cut publish.Cut) error {
	if e.hold != nil {
		select {
		case <-e.hold:
		case <-ctx.Done():
		}
	}
	expected := e.fleet.expected.Load()
	here := false
	e.mu.Lock()
	for _, r := range cut.Resources {
		e.set(r.Key, r.Version)
		here = here || expected != nil && r.Key == expected.key && r.Version != expected.not
	}
	for _, key := range cut.Gone {
		e.set(key, "")
		here = here || expected != nil && key == expected.key && expected.not != ""
	}
	e.mu.Unlock()
	e.resources.Add(int64(len(cut.Resources)))
	e.cuts.Add(1)
	if here {
		expected.arrived(e)
	}
	return nil
}

func (e *simulated) set(key unit.Key, version string) {
	k, v := e.fleet.names.of(key, version)
	for int(k) >= len(e.has) {
		e.has = append(e.has, make([]int32, int(k)+1-len(e.has))...)
	}
	e.has[k] = v
}

// held are the versions that it has.
func (e *simulated) held() map[unit.Key]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fleet.names.mu.RLock()
	defer e.fleet.names.mu.RUnlock()
	held := map[unit.Key]string{}
	for k, v := range e.has {
		if v != 0 {
			held[e.fleet.names.key[k]] = e.fleet.names.version[v]
		}
	}
	return held
}

// equal returns an error unless all edges have the same versions.
func (f *fleet) equal() error {
	want := f.edges[0].held()
	for _, e := range f.edges[1:] {
		e.mu.Lock()
		got := 0
		for k, v := range e.has {
			if v == 0 {
				continue
			}
			got++
			if want[f.names.key[k]] != f.names.version[v] {
				e.mu.Unlock()
				return fmt.Errorf("%s and %s have different versions of %s", f.edges[0].name, e.name, f.names.key[k])
			}
		}
		e.mu.Unlock()
		if got != len(want) {
			return fmt.Errorf("%s has %d resources, and %s %d", f.edges[0].name, len(want), e.name, got)
		}
	}
	return nil
}

// expect notes what edges are to get: another version of a unit than this one, empty for none.
func (f *fleet) expect(key unit.Key, not string) *arrival {
	a := &arrival{key: key, not: not, left: map[*simulated]bool{}, done: make(chan struct{})}
	for _, e := range f.edges {
		a.left[e] = true
	}
	f.expected.Store(a)
	return a
}

func (a *arrival) arrived(e *simulated) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.left[e] {
		return
	}
	delete(a.left, e)
	a.last = now
	if a.first.IsZero() {
		a.first = now
	}
	if len(a.left) == 0 {
		close(a.done)
	}
}

// await waits until all edges have it.
func (a *arrival) await(ctx context.Context) error {
	select {
	case <-a.done:
		return nil
	case <-time.After(startTimeout):
		return fmt.Errorf("waited %v for all edges to get %s", startTimeout, a.key)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// version is that which the first edge has of a unit.
func (f *fleet) version(key unit.Key) string { return f.edges[0].held()[key] }

// fleetTimeout is how long it may take until all edges have something: they share the cores with the control.
const fleetTimeout = 10 * time.Minute

// until waits for something to become true of all edges.
func (f *fleet) until(ctx context.Context, what string, holds func(*simulated) bool) error {
	deadline := time.After(fleetTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	waits := slices.Clone(f.edges)
	for {
		if waits = slices.DeleteFunc(waits, holds); len(waits) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			reason := errors.New("no connection failed")
			if last := f.broken.Load(); last != nil {
				reason = *last
			}
			return fmt.Errorf("waited %v for %d of %d edges to have %s: %w", fleetTimeout, len(waits), len(f.edges), what, reason)
		case <-tick.C:
		}
	}
}

// A sum is what all edges have sent and got so far.
type sum struct{ received, sent, payload, resources, cuts int64 }

func (f *fleet) sum() (s sum) {
	for _, e := range f.edges {
		s.received += e.received.Load()
		s.sent += e.sent.Load()
		s.payload += e.payload.Load()
		s.resources += e.resources.Load()
		s.cuts += e.cuts.Load()
	}
	return s
}

// since is what came after another sum, for each of so many.
func (s sum) since(before sum, each int) sum {
	n := int64(each)
	return sum{(s.received - before.received) / n, (s.sent - before.sent) / n, (s.payload - before.payload) / n, (s.resources - before.resources) / n, (s.cuts - before.cuts) / n}
}

// A counted connection counts bytes.
type counted struct {
	net.Conn
	edge *simulated
}

func (c *counted) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	c.edge.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(buffer []byte) (int, error) {
	n, err := c.Conn.Write(buffer)
	c.edge.sent.Add(int64(n))
	return n, err
}

// discarding is a connection whose streams drop the bytes of resources: hundreds of edges with all of them would
// find no room.
type discarding struct {
	grpc.ClientConnInterface
	edge *simulated
}

func (d discarding) NewStream(ctx context.Context, of *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := d.ClientConnInterface.NewStream(ctx, of, method, options...)
	return discardingStream{stream, d.edge}, err
}

type discardingStream struct {
	grpc.ClientStream
	edge *simulated
}

func (d discardingStream) RecvMsg(message any) error {
	err := d.ClientStream.RecvMsg(message)
	if response, is := message.(*discovery.DeltaDiscoveryResponse); is && err == nil {
		for _, r := range response.Resources {
			d.edge.payload.Add(int64(len(r.GetResource().GetValue())))
			r.Resource, r.Name, r.Version = nil, d.edge.fleet.names.text(r.Name), d.edge.fleet.names.text(r.Version)
		}
	}
	return err
}
