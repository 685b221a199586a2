package reports_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

// serveNamed returns a connection to edges whose credentials are the same.
func serveNamed(t *testing.T, edges *reports.Edges) *grpc.ClientConn {
	t.Helper()
	server, listener := grpc.NewServer(), bufconn.Listen(1<<16)
	edges.Register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient("passthrough:control", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func shared(context.Context) (name, group string, err error) { return "shared", "", nil }

// TestNames: what an edge says of its name is shown only beside credentials that edges share, and cut.
func TestNames(t *testing.T) {
	beside := func(name, said string) string { return name + "/" + said }
	long := strings.Repeat("x", 600)
	for about, c := range map[string]struct {
		named func(name, said string) string
		want  []string
	}{
		"own credentials":    {nil, []string{"shared", "shared", "shared"}},
		"shared credentials": {beside, []string{"shared/one", "shared/two", "shared/" + long[:500]}},
	} {
		edges := reports.NewEdges(shared)
		edges.Named = c.named
		connection := serveNamed(t, edges)
		for _, said := range []string{"two", "one", long} {
			r := &reports.Reporter{
				Interval: time.Millisecond,
				Status:   func(context.Context) reports.Status { return reports.Status{Name: said} },
				Holdings: func(context.Context, []unit.Key) ([]dataplane.Holding, error) { return nil, nil },
			}
			go func() { _ = r.Report(t.Context(), connection) }()
		}
		var names []string
		for deadline := time.Now().Add(time.Minute); !slices.Equal(names, c.want); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the edges are %q, want %q", about, names, c.want)
			}
			names = nil
			for _, edge := range edges.List() {
				if !edge.At.IsZero() {
					names = append(names, edge.Name)
				}
			}
		}
		names = nil
		for _, a := range edges.Ask(t.Context(), nil) {
			names = append(names, a.Edge)
			if a.Err != nil {
				t.Error(fmt.Errorf("%s: %s: %w", about, a.Edge, a.Err))
			}
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: the answers are of %q, want %q", about, names, c.want)
		}
	}
}
