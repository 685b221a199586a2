package headgatetest

import (
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
)

// Hasty reloads at once and as often as asked, without draining connections.
func Hasty() *edge.Timing {
	return &edge.Timing{Drain: time.Millisecond, ReloadInterval: time.Millisecond, WorkerTimeout: Timeout, Unbounded: true}
}

// ApplyReloading puts objects that take a reload, and waits until NGINX serves
// them.
func (g *Instance) ApplyReloading(manifests string) {
	g.t.Helper()
	before := g.Value(g.Metrics.Reloads)
	g.Put(manifests)
	Eventually(g.t, "NGINX is reloaded", func() bool { return g.Value(g.Metrics.Reloads) > before })
	g.WaitSynced()
}

// Leave prepares for the end of NGINX, without a grace period: clients are asked to leave.
func (g *Instance) Leave() {
	g.t.Helper()
	g.controller.Leave(g.t.Context(), 0)
}
