package controller

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/controller/budget"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/observe/tracker"
)

// A reload that hosts cause costs all tenants: it closes idle connections, and its old
// workers stay as long as a client likes, up to worker-shutdown-timeout. So there is a
// budget for such reloads, and none while many generations of workers are alive. Hosts
// that wait are served meanwhile, see plan/waiting.go. An administrator's change passes
// by, and takes along what waits.

// heldBy says why hosts wait for their reload; empty if they don't.
type heldBy string

const (
	byRate        heldBy = "rate"
	byGenerations heldBy = "generations"
)

// boundReload reports how long a reload that hosts cause must wait, 0 if it may begin.
func (c *Controller) boundReload() time.Duration {
	by, wait, now := heldBy(""), time.Duration(0), time.Now()
	generations := c.oldGenerations()
	switch {
	case c.settings.Timing.Unbounded || !c.desired.ForTenants(c.settings.Environment, c.static, c.reload.larger):
	case generations >= c.limits.OldGenerations:
		by, wait = byGenerations, workersPoll
	default:
		limits, waiting := c.limits, c.desired.WaitingNamespaces(c.static)
		limits.ReloadInterval = budget.Pace(c.limits, generations)
		if wait = c.reload.budget.Take(now, limits); wait == 0 {
			c.reload.share.Note(now, waiting)
		} else if c.reload.share.Take(now, c.limits, waiting) {
			wait = 0
		} else {
			by = byRate
		}
	}
	if until := now.Add(wait); until.Sub(c.reload.until).Abs() > time.Second {
		c.reload.until = until
	}
	if by != "" && by != c.reload.heldBy {
		c.metrics.ReloadsHeldBack.WithLabelValues(string(by)).Inc()
		c.log.Warn("a reload is held back", "by", by)
	}
	c.reload.heldBy = by
	return wait
}

// why is what hosts wait for, empty while the reload is under way.
func (c *Controller) why() string {
	switch {
	case c.reload.failures > 0:
		return "NGINX rejected the configuration"
	case c.reload.heldBy == byRate:
		return fmt.Sprintf("Ingresses can cause %d reloads at once and one more every %v to %v, the next one at %s", c.limits.ReloadBurst,
			budget.Pace(c.limits, 0), c.limits.ReloadInterval, c.reload.until.UTC().Format("15:04:05 UTC"))
	case c.reload.heldBy == byGenerations:
		return fmt.Sprintf("the workers of %d earlier reloads still serve connections", c.limits.OldGenerations)
	}
	return ""
}

// waitingHosts is the owner of findings about hosts that wait.
type waitingHosts struct{}

// reported is what findings about them were last made of.
type reported struct {
	why     string
	changes int
}

// noteWaiting reports the hosts that wait, with findings if that takes more than the time
// of a reload.
func (c *Controller) noteWaiting() {
	hosts, changes := c.desired.WaitingHosts()
	c.metrics.WaitingHosts.Set(float64(hosts))
	now := reported{c.why(), changes}
	if now == c.reload.reported {
		return
	}
	c.reload.reported = now
	var fs []finding.Finding
	if now.why != "" {
		fs = c.desired.Waiting(now.why)
	}
	c.settings.Tracker.Update([]tracker.Part{{Owner: waitingHosts{}, Findings: fs}})
}

// workersPoll is the interval of looks at old workers.
const workersPoll = time.Second

// oldGenerations is the number of generations that have workers which finish their
// connections. It updates the metrics.
func (c *Controller) oldGenerations() int {
	workers, generations := c.workers.Old(c.settings.Process.PID(), c.static.Generation)
	c.metrics.OldWorkers.Set(float64(workers))
	c.metrics.OldGenerations.Set(float64(generations))
	c.reload.look = nil
	if workers > 0 {
		c.reload.look = time.After(workersPoll)
	}
	return generations
}
