package controller

import (
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/unit"
)

// A front is what the half with NGINX asks of the one that builds: an [edge.Builder].
type front struct{ *Controller }

// CanBuild reports whether there is a host to build, and not only ones that wait because
// they are dear.
func (c front) CanBuild() bool {
	now := time.Now()
	at, ok := c.backlog.Due(now)
	return ok && !at.After(now)
}

// Rebuild builds hosts that get other profiles. It does so at once, so that a reload has only
// profiles that are kept, but not after each turn: every host that is built may change the
// decision, and with it hosts that were built before.
func (c front) Rebuild(hosts []string) {
	if len(hosts) == 0 {
		return
	}
	var parts []tracker.Part
	for _, host := range hosts {
		parts = c.buildOne(parts, unit.Host.Key(host), "")
	}
	c.finishBuild(parts)
}

// Reconsider builds the options again.
func (c front) Reconsider() { c.buildAll([]unit.Key{unit.GlobalsKey}) }

// Refuse refuses texts of the administrator that NGINX could not be reloaded with.
func (c front) Refuse(texts model.Snippets, err error, current model.Globals) {
	c.whole.Fail(texts, err)
	c.whole.Accept(current)
	c.Reconsider()
}

// Pushed records that everything taken is served, if it is, or at least all that need not wait for a
// reload that is held back, or because it is dear to build.
func (c front) Pushed(all, held bool) {
	if all && c.backlog.Empty() {
		c.served.Store(int64(c.taken))
	}
	if (all || held) && !c.CanBuild() {
		c.applied.Store(int64(c.taken))
		c.noteApplied()
	}
}

// Unpushed does nothing: what was taken counts as applied once a push succeeds.
func (c front) Unpushed(error) {}
