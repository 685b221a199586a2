package controller

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/plan"
)

// A reload is the way of one configuration to NGINX. While it is tested and
// connections drain, units of known profiles are pushed as ever; between the
// signal and the last old worker's end of accepting nothing is, since an old
// worker would take it after the new ones have copied.
type reload struct {
	// next is the configuration on its way, nil if none is.
	next   *plan.Static
	reason string
	// grown are larger dictionaries that the next configuration is to have.
	grown *plan.Dictionaries

	// last is when the last reload began, or failed.
	last time.Time
	// refused are the files that failed last; failures in a row of the same
	// ones make the pauses longer.
	refused  map[string][]byte
	failures int
	wait     *time.Timer
	tested   chan error
	drain    *time.Timer
}

func (r *reload) due() <-chan time.Time {
	if r.wait == nil {
		return nil
	}
	return r.wait.C
}

func (r *reload) drained() <-chan time.Time {
	if r.drain == nil {
		return nil
	}
	return r.drain.C
}

// pending tells whether a reload is on its way or waits for its time. One that
// was refused is not: nothing comes of it until something changes.
func (r *reload) pending() bool {
	return r.next != nil || r.wait != nil && r.failures == 0
}

// drop ends a reload that was on its way. A test that still runs answers into
// a channel that nobody reads.
func (r *reload) drop() {
	r.next, r.drain, r.wait, r.tested = nil, nil, nil, nil
}

// candidate is the file in which a configuration is tested.
const candidate = "nginx.conf.next"

// considerReload begins a reload if a static byte differs, unless one is on
// its way or was a moment ago.
func (c *Controller) considerReload(ctx context.Context) {
	r := &c.reload
	if r.next != nil {
		return
	}
	next, reason, err := c.desired.Next(c.settings.Environment, c.static, r.grown)
	if err != nil {
		c.log.Error("plan nginx.conf", "error", err)
		return
	}
	if reason == "" {
		c.static = next
		r.wait = nil
		return
	}
	if !plan.SameFiles(r.refused, next.Files) {
		r.failures = 0
	}
	if early := c.settings.Timing.apart(r.failures) - time.Since(r.last); early > 0 {
		r.wait = time.NewTimer(early)
		return
	}
	r.wait = nil
	file := filepath.Join(c.settings.RunDir.Path(), candidate)
	if err := c.settings.RunDir.Write(map[string][]byte{candidate: next.Files[plan.NginxConf]}); err != nil {
		c.failReload(next, fmt.Errorf("write nginx.conf: %w", err))
		return
	}
	tested := make(chan error, 1)
	r.next, r.reason, r.tested = &next, reason, tested
	go func() { tested <- c.settings.Process.Test(ctx, file) }()
}

// apart is the least time until the next reload after so many failures.
func (t Timing) apart(failures int) time.Duration {
	return t.Apart << min(failures, 5)
}

// testedReload goes on with a configuration that NGINX took.
func (c *Controller) testedReload(ctx context.Context, err error) {
	if err == nil {
		err = c.client.Draining(ctx, true)
	}
	if err != nil {
		c.endDrain(ctx)
		c.failReload(*c.reload.next, err)
		return
	}
	c.reload.drain = time.NewTimer(c.settings.Timing.Drain)
}

// failReload leaves NGINX at the configuration that it has.
func (c *Controller) failReload(next plan.Static, err error) {
	r := &c.reload
	r.drop()
	r.refused = next.Files
	r.last = time.Now()
	r.failures++
	again := c.settings.Timing.apart(r.failures)
	r.wait = time.NewTimer(again)
	c.metrics.ReloadFailures.Inc()
	c.log.Error("reload: NGINX keeps its configuration", "error", err, "again_in", again)
	c.noticeReload(err)
	c.noteServed()
}

// finishReload has NGINX take the configuration over, waits until only new
// workers accept, and pushes what waited for it.
func (c *Controller) finishReload(ctx context.Context) {
	r := &c.reload
	next, reason := *r.next, r.reason
	r.drop()
	r.last = time.Now()
	previous := c.static
	if err := c.takeOver(ctx, next); err != nil {
		if writeErr := c.write(previous); writeErr != nil {
			c.log.Error("write the last good nginx.conf", "error", writeErr)
		}
		c.static.Tried = next.Generation
		c.endDrain(ctx)
		c.failReload(next, err)
		return
	}
	r.refused, r.failures = nil, 0
	r.grown = nil
	c.static = next
	c.metrics.Reloads.Inc()
	c.metrics.NginxConfBytes.Set(float64(len(next.Files[plan.NginxConf])))
	c.log.Info("reloaded NGINX", "reason", reason, "generation", next.Generation, "took", time.Since(r.last).Round(time.Millisecond))
	c.noticeReload(nil)
	c.endDrain(ctx)
	c.apply(ctx)
}

func (c *Controller) noticeReload(err error) {
	if c.settings.Notices.Reloaded != nil {
		c.settings.Notices.Reloaded(err)
	}
}

func (c *Controller) endDrain(ctx context.Context) {
	if err := c.client.Draining(ctx, false); err != nil {
		c.log.Warn("end the drain", "error", err)
	}
}

func (c *Controller) takeOver(ctx context.Context, next plan.Static) error {
	if err := c.write(next); err != nil {
		return err
	}
	if err := c.settings.Process.Reload(); err != nil {
		return err
	}
	c.client.CloseIdle()
	err := c.settle(ctx, next)
	c.client.CloseIdle()
	return err
}

// write puts a configuration where NGINX reads it, its number first: should
// NGINX start in between, it is of a generation that nothing was pushed for.
func (c *Controller) write(static plan.Static) error {
	err := c.settings.RunDir.WriteGeneration(static.Generation)
	if err == nil {
		err = c.settings.RunDir.Write(static.Files)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// settle waits until all workers of a configuration accept connections and no
// older one does. That the new ones answer is not enough: NGINX tells the old
// ones to stop 100 ms later.
func (c *Controller) settle(ctx context.Context, next plan.Static) error {
	ctx, cancel := context.WithTimeout(ctx, c.settings.Timing.Settle)
	defer cancel()
	fresh, old := 0, 0
	for {
		if state, err := c.client.State(ctx); err == nil {
			fresh, old = c.accepting(state, next.Generation)
			if fresh >= next.Workers && old == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if fresh > 0 {
				c.log.Warn("NGINX took the configuration, but its workers are not as expected",
					"generation", next.Generation, "new", fresh, "wanted", next.Workers, "old", old)
				return nil
			}
			return fmt.Errorf("NGINX tested the configuration, but did not take it (its log says why): no worker of generation %d", next.Generation)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// accepting counts the workers of a generation that accept connections, and
// those of others. A worker that was killed can't say that it no longer does,
// and its number may be another process's by now: only the master's children
// count.
func (c *Controller) accepting(state dataplane.State, generation int) (fresh, old int) {
	master := c.settings.Process.PID()
	for _, w := range state.Accepting {
		switch {
		case !isChild(w.PID, master):
		case w.Generation == generation:
			fresh++
		default:
			old++
		}
	}
	return fresh, old
}

// isChild tells whether a process is there and has that parent.
func isChild(pid, parent int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// "PID (NAME) STATE PARENT …", and the name may hold anything.
	_, behind, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	fields := bytes.Fields(behind)
	return ok && len(fields) > 1 && string(fields[1]) == strconv.Itoa(parent)
}
