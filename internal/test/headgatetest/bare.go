package headgatetest

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// StartBare runs an NGINX without a controller: it is of generation 1 with
// dictionary 1, which are empty, and has only the default profile. Timing and
// manifests are not used, and Apply, Put, Delete and WaitSynced must not be
// called.
func StartBare(t testing.TB, o Options) *Instance {
	t.Helper()
	begun := time.Now()
	g := &Instance{t: t, Log: &Log{}, Metrics: metrics.New()}
	o.fill()
	env := g.prepare(o, slog.New(slog.NewTextHandler(g.Log, nil)))
	builder := build.New(o.Features, annotationPrefix)
	globals, _ := builder.Globals(store.New(store.Settings{}, builder.Refer))
	desired := plan.NewDesired(nil)
	desired.Set(unit.Of(globals))
	dictionaries := nginxconf.FirstDictionaries(0, 0)
	if o.Dictionaries != nil {
		dictionaries = *o.Dictionaries
	}
	static, _, err := desired.Next(env, plan.Static{Dictionaries: dictionaries}, nil)
	must(t, err)
	g.DefaultProfile = globals.Default.Name()
	static.Files["generation"] = []byte(strconv.Itoa(static.Generation))
	must(t, g.RunDir.Write(static.Files))
	must(t, g.Process.Start(t.Context()))
	t.Cleanup(func() { g.stop() })
	noteStart(t, begun)
	return g
}

// stop ends NGINX. What a test left open is cut.
func (g *Instance) stop() {
	stopping, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := g.Process.Stop(stopping); err != nil {
		g.t.Logf("stop NGINX: %v", err)
	}
}
