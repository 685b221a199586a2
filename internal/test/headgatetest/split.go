package headgatetest

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/follower"
	"github.com/headgate/headgate/internal/controller/publisher"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/xds"
)

// A split is what has NGINX, where that is apart from what builds.
type split struct {
	store    *publish.Store
	follower *follower.Follower
	// has is up to when NGINX has all changes.
	has atomic.Uint64
	end func()
}

// isSplit reports whether instances are to be split: HEADGATE_SPLIT=1 runs any test of an Instance so.
func isSplit() bool { return os.Getenv("HEADGATE_SPLIT") == "1" }

// startSplit starts an edge, which follows the publisher that it returns.
func (g *Instance) startSplit(s edge.Settings, log *slog.Logger) *publisher.Publisher {
	g.t.Helper()
	g.split = &split{store: publish.New()}
	p := publisher.New(g.split.store, log)
	server, listener := grpc.NewServer(grpc.MaxRecvMsgSize(xds.MaxMessage), grpc.ForceServerCodecV2(xds.Codec())), bufconn.Listen(1<<20)
	(&xds.Server{
		Store:    g.split.store,
		Identify: func(context.Context) (xds.Edge, error) { return xds.Edge{Name: "edge"}, nil },
		Ready:    p.Ready, Streams: noted{p, &g.split.has},
	}).Register(server)
	connection, err := grpc.NewClient("passthrough:control", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	must(g.t, err)
	g.split.follower = follower.New(s, func() {})
	ctx, cancel := context.WithCancel(context.Background())
	ended, followed := make(chan error, 1), make(chan error, 1)
	go func() { ended <- g.split.follower.Run(ctx) }()
	go func() {
		select {
		case <-p.Serving():
			go func() { _ = server.Serve(listener) }()
			followed <- xds.Follow(ctx, connection, "edge", nil, g.split.follower.Take)
		case <-ctx.Done():
			followed <- nil
		}
	}()
	g.split.end = func() {
		cancel()
		if err := <-ended; err != nil {
			g.t.Errorf("the edge ended: %v", err)
		}
		<-followed
		connection.Close()
		server.Stop()
	}
	return p
}

// noted has a Publisher know of streams, and notes what NGINX has.
type noted struct {
	*publisher.Publisher
	has *atomic.Uint64
}

// Acknowledged notes what NGINX has.
func (n noted) Acknowledged(stream int64, at uint64, rejected error) {
	n.Publisher.Acknowledged(stream, at, rejected)
	n.has.Store(at)
}

// stop ends the edge, if there is one. NGINX still runs.
func (s *split) stop() {
	if s != nil {
		s.end()
	}
}

// synced reports whether NGINX has all that is published. Without an edge it has.
func (s *split) synced() bool {
	return s == nil || s.has.Load() == s.store.At() && s.follower.Synced()
}

// Check is the readiness of what has NGINX.
func (g *Instance) Check(ctx context.Context) error {
	if g.split != nil {
		return g.split.follower.Check(ctx)
	}
	return g.controller.Check(ctx)
}

// Published is what the control of an instance has published that is split.
func (g *Instance) Published() *publish.Store { return g.split.store }
