package follower

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// What can't be pushed is answered, so that the cut can come which repairs that.
func TestFailedPushIsAnswered(t *testing.T) {
	root, err := os.MkdirTemp("", "hg-") // Names of sockets are short.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	dir, err := rundir.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	log, m := slog.New(slog.DiscardHandler), metrics.New()
	f := New(edge.Settings{
		Process: nginx.New(nginx.Options{Dir: dir, Log: log}), RunDir: dir, Metrics: m, Families: metrics.NewFamilies(m.Registry, metrics.Identity{}, metrics.Build{}), Tracker: tracker.New(log, m.Findings), Log: log,
	}, func() {})
	key := unit.Backend.Key("shop/web/80")
	for range 2 {
		done := make(chan error, 1)
		f.take(received{publish.Cut{Resources: []wire.Resource{{Key: key, Version: "1", Bytes: []byte(`{"Model":{"Key":"shop/web/80"}}`)}}}, done})
		f.edge.Apply(t.Context()) // There is no NGINX.
		select {
		case err := <-done:
			if err == nil || !strings.HasPrefix(err.Error(), "push to NGINX: ") {
				t.Errorf("the answer is: %v", err)
			}
		default:
			t.Fatal("there is no answer")
		}
		if f.Synced() {
			t.Error("everything is said to be served")
		}
	}
}
