package edge

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/controller/edge/budget"
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
func (e *Edge) boundReload() time.Duration {
	by, wait, now := heldBy(""), time.Duration(0), time.Now()
	generations := e.oldGenerations()
	switch {
	case e.settings.Timing.Unbounded || !e.desired.ForTenants(e.settings.Environment, e.static, e.reload.larger):
	case generations >= e.limits.OldGenerations:
		by, wait = byGenerations, workersPoll
	default:
		limits, waiting := e.limits, e.desired.WaitingNamespaces(e.static)
		limits.ReloadInterval = budget.Pace(e.limits, generations)
		if wait = e.reload.budget.Take(now, limits); wait == 0 {
			e.reload.share.Note(now, waiting)
		} else if e.reload.share.Take(now, e.limits, waiting) {
			wait = 0
		} else {
			by = byRate
		}
	}
	if until := now.Add(wait); until.Sub(e.reload.until).Abs() > time.Second {
		e.reload.until = until
	}
	if by != "" && by != e.reload.heldBy {
		e.settings.Metrics.ReloadsHeldBack.WithLabelValues(string(by)).Inc()
		e.settings.Log.Warn("a reload is held back", "by", by)
	}
	e.reload.heldBy = by
	return wait
}

// why is what hosts wait for, empty while the reload is under way.
func (e *Edge) why() string {
	switch {
	case e.reload.failures > 0:
		return "NGINX rejected the configuration"
	case e.reload.heldBy == byRate:
		return fmt.Sprintf("Ingresses can cause %d reloads at once and one more every %v to %v, the next one at %s", e.limits.ReloadBurst,
			budget.Pace(e.limits, 0), e.limits.ReloadInterval, e.reload.until.UTC().Format("15:04:05 UTC"))
	case e.reload.heldBy == byGenerations:
		return fmt.Sprintf("the workers of %d earlier reloads still serve connections", e.limits.OldGenerations)
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
func (e *Edge) noteWaiting() {
	hosts, changes := e.desired.WaitingHosts()
	e.settings.Metrics.WaitingHosts.Set(float64(hosts))
	now := reported{e.why(), changes}
	if now == e.reload.reported {
		return
	}
	e.reload.reported = now
	var fs []finding.Finding
	if now.why != "" {
		fs = e.desired.Waiting(now.why)
	}
	e.settings.Tracker.Update([]tracker.Part{{Owner: waitingHosts{}, Findings: fs}})
}

// workersPoll is the interval of looks at old workers.
const workersPoll = time.Second

// oldGenerations is the number of generations that have workers which finish their
// connections. It updates the metrics.
func (e *Edge) oldGenerations() int {
	workers, generations := e.workers.Old(e.settings.Process.PID(), e.static.Generation)
	e.settings.Metrics.OldWorkers.Set(float64(workers))
	e.settings.Metrics.OldGenerations.Set(float64(generations))
	e.reload.look.stop()
	if workers > 0 {
		e.reload.look = e.after(workersPoll, func(context.Context) { e.oldGenerations() })
	}
	return generations
}
