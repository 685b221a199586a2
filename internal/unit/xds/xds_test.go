package xds_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
	"github.com/headgate/headgate/internal/unit/xds"
)

// A control serves a store to edges in this process.
type control struct {
	*publish.Store
	server   *grpc.Server
	listener *bufconn.Listener

	mu       sync.Mutex
	edges    map[int64]string
	cuts     map[string]int
	has      map[string]uint64
	rejected []string
	loading  atomic.Bool
}

func (c *control) Connected(stream int64, edge string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edges[stream] = edge
}

func (c *control) Gone(stream int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.edges, stream)
}

func (c *control) Acknowledged(stream int64, at uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.has[c.edges[stream]] = at
	c.cuts[c.edges[stream]]++
	if err != nil {
		c.rejected = append(c.rejected, err.Error())
	}
}

func start(t *testing.T, takes func(string) bool) *control {
	c := &control{Store: publish.New(), server: grpc.NewServer(grpc.MaxRecvMsgSize(xds.MaxMessage), grpc.ForceServerCodecV2(xds.Codec())), listener: bufconn.Listen(1 << 16), cuts: map[string]int{}, has: map[string]uint64{}, edges: map[int64]string{}}
	(&xds.Server{
		Store: c.Store,
		Identify: func(ctx context.Context) (xds.Edge, error) {
			name := metadata.ValueFromIncomingContext(ctx, "edge")
			if len(name) == 0 {
				return xds.Edge{}, errors.New("no name")
			}
			return xds.Edge{Name: name[0], Takes: takes}, nil
		},
		Named: func(name, said string) string {
			if said == name {
				return name
			}
			return name + "/" + said
		},
		Ready: func() bool { return !c.loading.Load() }, Streams: c,
	}).Register(c.server)
	go func() { _ = c.server.Serve(c.listener) }()
	t.Cleanup(c.server.Stop)
	return c
}

func (c *control) connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("passthrough:control", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// An edge keeps what it gets.
type edge struct {
	name string
	// says is the name that it says, if that is another one.
	says string
	mu   sync.Mutex
	has  map[unit.Key]string
	// bytes are those that it has received.
	bytes int
	// hold, if it is not nil, is waited for before a cut is taken, and reject is why it is not.
	hold   chan struct{}
	reject error
	ended  chan error
	end    context.CancelFunc
}

func (c *control) follow(t *testing.T, e *edge) {
	t.Helper()
	if e.has == nil {
		e.has = map[unit.Key]string{}
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "edge", e.name))
	e.end, e.ended = cancel, make(chan error, 1)
	held := maps.Clone(e.has)
	connection := c.connect(t)
	go func() { e.ended <- xds.Follow(ctx, connection, cmp.Or(e.says, e.name), held, e.take) }()
}

func (e *edge) take(ctx context.Context, cut publish.Cut) error {
	if e.hold != nil {
		select {
		case <-e.hold:
		case <-ctx.Done():
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range cut.Resources {
		e.has[r.Key] = r.Version
		e.bytes += len(r.Bytes)
	}
	for _, key := range cut.Gone {
		delete(e.has, key)
	}
	return e.reject
}

func (e *edge) versions() map[unit.Key]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.has)
}

// TestSaidName: the name that an edge says is known beside that of its credentials.
func TestSaidName(t *testing.T) {
	c := start(t, nil)
	c.follow(t, &edge{name: "shared", says: "one"})
	c.follow(t, &edge{name: "shared", says: "two"})
	eventually(t, "both are known", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.Equal(slices.Sorted(maps.Values(c.edges)), []string{"shared/one", "shared/two"})
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

func change(kind unit.Kind, name, version string) publish.Change {
	key := kind.Key(name)
	return publish.Change{Key: key, Namespace: "n", Resources: []wire.Resource{{Key: key, Version: version, Bytes: []byte(strings.Repeat(version, 100))}}}
}

// Edges get everything, what changes, and after a new connection what differs.
func TestEdgesFollow(t *testing.T) {
	c := start(t, nil)
	want := map[unit.Key]string{}
	put := func(kind unit.Kind, name, version string) {
		c.Put(change(kind, name, version))
		want[kind.Key(name)] = version
	}
	for i := range 1000 {
		put(unit.Host, fmt.Sprintf("%d.test", i), "1")
		put(unit.Backend, fmt.Sprintf("n/%d/80", i), "1")
	}
	put(unit.Globals, unit.GlobalsName, "1")
	edges := []*edge{{name: "a"}, {name: "b"}, {name: "c"}}
	all := func() bool {
		for _, e := range edges {
			if !maps.Equal(e.versions(), want) {
				return false
			}
		}
		return true
	}
	for _, e := range edges {
		c.follow(t, e)
	}
	eventually(t, "all edges have everything", all)
	put(unit.Host, "7.test", "2")
	c.Put(publish.Change{Key: unit.Host.Key("8.test")})
	delete(want, unit.Host.Key("8.test"))
	eventually(t, "all edges have the change", all)

	edges[1].end()
	<-edges[1].ended
	put(unit.Host, "9.test", "3")
	c.Put(publish.Change{Key: unit.Host.Key("10.test")})
	delete(want, unit.Host.Key("10.test"))
	edges[1].bytes = 0
	c.follow(t, edges[1])
	eventually(t, "the edge that was away has the change", all)
	if edges[1].bytes != 100 {
		t.Errorf("after a new connection, an edge got %d bytes: want those of one host", edges[1].bytes)
	}
	if got := c.Size().Readers; got != 3 {
		t.Errorf("there are %d readers", got)
	}
}

// A slow edge gets the newest version of each unit, and holds up no other one.
func TestSlowEdge(t *testing.T) {
	c := start(t, nil)
	slow, quick := &edge{name: "slow", hold: make(chan struct{})}, &edge{name: "quick"}
	c.follow(t, slow)
	c.follow(t, quick)
	for i := range 300 {
		version := fmt.Sprint(i)
		c.Put(change(unit.Backend, "n/web/80", version))
		eventually(t, "the quick edge has the change", func() bool { return quick.versions()[unit.Backend.Key("n/web/80")] == version })
	}
	close(slow.hold)
	eventually(t, "the slow edge has the newest version", func() bool { return slow.versions()[unit.Backend.Key("n/web/80")] == "299" })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cuts["slow"] > 4 {
		t.Errorf("the slow edge had %d cuts: want the one that it waited with, and what was newest after it", c.cuts["slow"])
	}
}

// An edge that can't use what it gets says why, and gets what comes next.
func TestRejection(t *testing.T) {
	c := start(t, nil)
	e := &edge{name: "a", reject: errors.New("NGINX has no module for it")}
	c.follow(t, e)
	c.Put(change(unit.Host, "a.test", "1"))
	eventually(t, "the rejection is known", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.rejected) > 0 && c.rejected[0] == "NGINX has no module for it"
	})
	c.Put(change(unit.Host, "a.test", "2"))
	eventually(t, "the edge has the next version", func() bool { return e.versions()[unit.Host.Key("a.test")] == "2" })
}

// A cut of any number of responses arrives: nothing waits for what acknowledges them meanwhile.
func TestManyResponses(t *testing.T) {
	c := start(t, nil)
	const units = 500
	for i := range units {
		key := unit.Host.Key(fmt.Sprint(i))
		// Each is a response of its own.
		c.Put(publish.Change{Key: key, Resources: []wire.Resource{{Key: key, Version: "1", Bytes: large}}})
	}
	e := &edge{name: "a"}
	c.follow(t, e)
	eventually(t, "the edge has everything", func() bool { return len(e.versions()) == units })
}

var large = make([]byte, 140<<10)

// Before a control has read everything, an edge keeps what it has.
func TestNotReady(t *testing.T) {
	c := start(t, nil)
	c.loading.Store(true)
	e := &edge{name: "a", has: map[unit.Key]string{unit.Host.Key("a.test"): "1"}}
	c.follow(t, e)
	if err := <-e.ended; status.Code(errors.Unwrap(err)) != codes.Unavailable || len(e.versions()) != 1 {
		t.Errorf("%v, it has %v", err, e.versions())
	}
}

// An edge gets the units of its namespaces.
func TestOnlyItsNamespaces(t *testing.T) {
	c := start(t, func(namespace string) bool { return namespace == "mine" })
	e := &edge{name: "a"}
	c.follow(t, e)
	mine := change(unit.Host, "a.test", "1")
	mine.Namespace = "mine"
	c.Put(change(unit.Host, "b.test", "1"), mine)
	eventually(t, "the edge has its unit", func() bool { return len(e.versions()) > 0 })
	if got := e.versions(); len(got) != 1 || got[unit.Host.Key("a.test")] == "" {
		t.Errorf("it has %v", got)
	}
	at := c.Put(change(unit.Host, "b.test", "2"))
	eventually(t, "the edge lacks nothing of its own", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.has["a"] == at
	})
}

// Edges that say nothing hold up no other one.
func TestSilentEdges(t *testing.T) {
	c := start(t, nil)
	c.Put(change(unit.Host, "a.test", "1"))
	ended := make(chan error, 20)
	connection := c.connect(t)
	for range cap(ended) {
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(metadata.AppendToOutgoingContext(t.Context(), "edge", "silent"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := stream.Recv()
			ended <- err
		}()
	}
	eventually(t, "all are there", func() bool { return c.Size().Readers == cap(ended) })
	e := &edge{name: "a"}
	c.follow(t, e)
	eventually(t, "the edge has everything", func() bool { return len(e.versions()) == 1 })
	select {
	case err := <-ended:
		t.Errorf("it waited for the end of another one: %v", err)
	default:
	}
}

// An edge can't have a control keep any amount of names.
func TestTooMuchIsHeld(t *testing.T) {
	c := start(t, nil)
	e := &edge{name: "a", has: map[unit.Key]string{}}
	for i := range 33 {
		name := fmt.Sprint(i, strings.Repeat("x", 1<<20))
		e.has[unit.Host.Key(name)], e.has[unit.Backend.Key(name)] = "1", "1"
	}
	c.follow(t, e)
	if err := <-e.ended; status.Code(errors.Unwrap(err)) != codes.ResourceExhausted {
		t.Errorf("%.200v", err)
	}
	eventually(t, "nothing is kept", func() bool { return c.Size().Readers == 0 })
}

func node(t *testing.T, schema int) *core.Node {
	t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"schema": schema})
	if err != nil {
		t.Fatal(err)
	}
	return &core.Node{Metadata: metadata}
}

// Who is not known gets nothing, nor does an edge that lacks kinds, or has another schema.
func TestWhoIsRefused(t *testing.T) {
	c := start(t, nil)
	connection := c.connect(t)
	for name, o := range map[string]struct {
		edge  string
		first *discovery.DeltaDiscoveryRequest
		want  codes.Code
	}{
		"no name":          {"", &discovery.DeltaDiscoveryRequest{}, codes.PermissionDenied},
		"no schema":        {"a", &discovery.DeltaDiscoveryRequest{}, codes.FailedPrecondition},
		"a schema too new": {"a", &discovery.DeltaDiscoveryRequest{Node: node(t, xds.Schema+2)}, codes.FailedPrecondition},
		"no types":         {"a", &discovery.DeltaDiscoveryRequest{Node: node(t, xds.Schema)}, codes.FailedPrecondition},
	} {
		ctx := t.Context()
		if o.edge != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "edge", o.edge)
		}
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// What is refused at once may end before that.
		_ = stream.Send(o.first)
		if _, err := stream.Recv(); status.Code(err) != o.want {
			t.Errorf("%s: %v, want %v", name, err, o.want)
		}
	}
}
