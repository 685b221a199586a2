package controller

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
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

// A budget is a token bucket of reloads.
type budget struct {
	tokens float64
	since  time.Time
}

// take takes a reload, or returns how long it takes until there is one.
func (b *budget) take(now time.Time, limits model.Process) time.Duration {
	burst := float64(limits.ReloadBurst)
	switch {
	case b.since.IsZero():
		b.tokens = burst
	case limits.ReloadInterval > 0:
		b.tokens += now.Sub(b.since).Seconds() / limits.ReloadInterval.Seconds()
	}
	b.since = now
	if b.tokens = min(b.tokens, burst); b.tokens >= 1 || limits.ReloadInterval <= 0 {
		b.tokens = max(0, b.tokens-1)
		return 0
	}
	return max(time.Millisecond, time.Duration((1-b.tokens)*float64(limits.ReloadInterval)))
}

// boundReload reports how long a reload that hosts cause must wait, 0 if it may begin.
func (c *Controller) boundReload() time.Duration {
	by, wait := heldBy(""), time.Duration(0)
	switch {
	case c.settings.Timing.Unbounded || !c.desired.ForTenants(c.settings.Environment, c.static, c.reload.larger):
	case c.oldGenerations() >= c.limits.OldGenerations:
		by, wait = byGenerations, workersPoll
	default:
		if wait = c.reload.budget.take(time.Now(), c.limits); wait > 0 {
			by = byRate
		}
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
		return fmt.Sprintf("Ingresses can cause %d reloads at once and one more every %v", c.limits.ReloadBurst, c.limits.ReloadInterval)
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
	master := c.settings.Process.PID()
	alive, workers := map[int]bool{}, 0
	for pid, generation := range c.workers {
		switch {
		case !isWorker(pid, master):
			delete(c.workers, pid)
		case generation != c.static.Generation:
			alive[generation] = true
			workers++
		}
	}
	c.metrics.OldWorkers.Set(float64(workers))
	c.metrics.OldGenerations.Set(float64(len(alive)))
	c.reload.look = nil
	if workers > 0 {
		c.reload.look = time.After(workersPoll)
	}
	return len(alive)
}

// isWorker reports whether a process is a worker of the master, or of one that died, whose
// workers this process adopted.
func isWorker(pid, master int) bool {
	if !isChild(pid, master) && !isChild(pid, os.Getpid()) {
		return false
	}
	title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.HasPrefix(string(title), "nginx: worker")
}

// limitsOf are the limits of reloads, which the process has only with its feature.
func limitsOf(p model.Process) model.Process {
	if p.ReloadBurst == 0 {
		p.ReloadBurst, p.ReloadInterval, p.OldGenerations = model.ReloadBurst, model.ReloadInterval, model.OldGenerations
	}
	return p
}
