package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/internal/controller/budget"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// A reload is the progress of a configuration towards NGINX. During its test and
// the drain, units with known profiles are pushed as usual. Nothing is pushed
// between the signal and the time when the last old worker stops accepting:
// an old worker would apply it after the new ones have copied the memory.
type reload struct {
	// next is the configuration being applied, or nil.
	next   *plan.Static
	reason string
	// larger are the larger dictionaries of the next configuration.
	larger *nginxconf.Dictionaries

	// last is when the last reload began or failed.
	last time.Time
	// rejected are the files of the last failure. Further failures with the same
	// files make the pauses longer.
	rejected map[string][]byte
	failures int
	// These fire when the next reload may begin, when the test is done, and when
	// the drain is over; nil while there is nothing to wait for.
	due     <-chan time.Time
	tested  chan error
	drained <-chan time.Time

	// budget is that of hosts, and share what a namespace has of its own; heldBy is why they wait
	// now, and until when.
	budget   budget.Budget
	share    budget.Share
	until    time.Time
	heldBy   heldBy
	reported reported
	// look fires when it is time to look at old workers, while there are any.
	look <-chan time.Time
}

// pending reports whether a reload is in progress or waits for its time. A
// rejected one is not pending: it has no effect until something changes.
func (r *reload) pending() bool {
	return r.next != nil || r.due != nil && r.failures == 0
}

// drop ends a reload in progress. The result of a test that still runs goes to a
// channel without a reader.
func (r *reload) drop() {
	r.next, r.drained, r.due, r.tested = nil, nil, nil, nil
}

// candidate is the file that is tested.
const candidate = "nginx.conf.next"

// considerReload begins a reload if a static file differs, unless a reload is in
// progress or the last one was too recent.
func (c *Controller) considerReload(ctx context.Context) {
	r := &c.reload
	if r.next != nil {
		return
	}
	next, reason, err := c.desired.Next(c.settings.Environment, c.static, r.larger)
	if err != nil {
		c.log.Error("planning nginx.conf failed", "error", err)
		return
	}
	if reason == "" {
		c.static = next
		c.settings.Families.Unchanged()
		r.due, r.heldBy = nil, ""
		return
	}
	if !plan.SameFiles(r.rejected, next.Files) {
		r.failures = 0
	}
	if early := c.settings.Timing.interval(r.failures) - time.Since(r.last); early > 0 {
		r.due = time.After(early)
		return
	}
	if wait := c.boundReload(); wait > 0 {
		r.due = time.After(wait)
		return
	}
	r.due = nil
	file := filepath.Join(c.settings.RunDir.Path(), candidate)
	files := maps.Clone(next.Files)
	files[candidate] = files[nginxconf.File]
	delete(files, nginxconf.File)
	err = c.settings.RunDir.Restore()
	if err == nil {
		err = c.settings.RunDir.Write(files)
	}
	if err != nil {
		c.failReload(next, fmt.Errorf("write nginx.conf: %w", err))
		return
	}
	tested := make(chan error, 1)
	r.next, r.reason, r.tested = &next, reason, tested
	go func() { tested <- c.settings.Process.Test(ctx, file) }()
}

// interval is the minimum time until the next reload after some failures.
func (t Timing) interval(failures int) time.Duration {
	return t.ReloadInterval << min(failures, 5)
}

// testedReload continues with a configuration that passed its test.
func (c *Controller) testedReload(ctx context.Context, err error) {
	if err == nil {
		c.logDifference(ctx)
		err = c.client.Draining(ctx, true)
	}
	if err != nil {
		c.endDrain(ctx)
		c.failReload(*c.reload.next, err)
		c.testAgain(ctx, err)
		return
	}
	c.reload.drained = time.After(c.settings.Timing.Drain)
}

const (
	// maxDifference bounds what is logged of the difference between two nginx.conf.
	maxDifference     = 64 << 10
	differenceTimeout = 5 * time.Second
)

// logDifference logs, for debugging, what changes in nginx.conf.
func (c *Controller) logDifference(ctx context.Context) {
	if !c.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, differenceTimeout)
	defer cancel()
	dir := c.settings.RunDir.Path()
	// It exits with 1 if the files differ.
	text, err := exec.CommandContext(ctx, "diff", "--unified", filepath.Join(dir, nginxconf.File), filepath.Join(dir, candidate)).Output()
	if len(text) == 0 {
		c.log.Debug("comparing nginx.conf failed", "error", err)
		return
	}
	c.log.Debug("nginx.conf changes", "difference", string(text[:min(len(text), maxDifference)]))
}

// failReload leaves NGINX with its current configuration.
func (c *Controller) failReload(next plan.Static, err error) {
	r := &c.reload
	r.drop()
	r.rejected = next.Files
	r.last = time.Now()
	r.failures++
	again := c.settings.Timing.interval(r.failures)
	r.due = time.After(again)
	c.metrics.ReloadFailures.Inc()
	c.settings.History.Reload(r.reason, next.Generation, 0, err)
	c.settings.Families.Rejected()
	c.log.Error("reload failed; NGINX keeps its configuration", "error", err, "again_in", again)
	c.noticeReload(err)
	c.noteServed()
	c.noteWaiting()
}

// finishReload reloads NGINX, waits until only new workers accept connections,
// and pushes the held units.
func (c *Controller) finishReload(ctx context.Context) {
	r := &c.reload
	next, reason := *r.next, r.reason
	r.drop()
	r.last = time.Now()
	previous := c.static
	err := c.takeOver(ctx, next)
	if err != nil {
		c.onlyAddresses(previous)
		if writeErr := c.write(previous); writeErr != nil {
			c.log.Error("restoring the last good nginx.conf failed", "error", writeErr)
		}
		c.static.Tried = next.Generation
		c.endDrain(ctx)
		c.failReload(next, err)
		c.blameTexts(ctx, next, previous, err)
		return
	}
	r.rejected, r.failures = nil, 0
	r.larger = nil
	c.static = next
	c.onlyAddresses(next)
	c.metrics.Reloads.Inc()
	for _, reason := range plan.ReloadReasons(previous, next) {
		c.metrics.ReloadReasons.WithLabelValues(string(reason)).Inc()
	}
	c.noteConfigured()
	took := time.Since(r.last)
	c.log.Info("reloaded NGINX", "reason", reason, "generation", next.Generation, "took", took.Round(time.Millisecond))
	c.settings.History.Reload(reason, next.Generation, took, nil)
	c.noticeReload(nil)
	c.oldGenerations()
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
		c.log.Warn("ending the drain failed", "error", err)
	}
}

func (c *Controller) takeOver(ctx context.Context, next plan.Static) error {
	if err := c.addAddresses(next); err != nil {
		return err
	}
	if err := c.write(next); err != nil {
		return err
	}
	if state, err := c.client.State(ctx); err == nil {
		// From now on these are old. They may have stopped accepting before the next look.
		c.workers.Accepting(state, c.settings.Process.PID(), next.Generation)
	}
	if err := c.settings.Process.Reload(); err != nil {
		return err
	}
	c.client.CloseIdle()
	defer c.client.CloseIdle()
	return c.awaitWorkers(ctx, next)
}

// write puts a configuration where NGINX reads it, its number first: if NGINX
// starts in between, it has a generation for which nothing was pushed. NGINX reads no files
// of other configurations again, which are removed.
func (c *Controller) write(static plan.Static) error {
	err := c.settings.RunDir.WriteGeneration(static.Generation)
	if err == nil {
		err = c.settings.RunDir.Write(static.Files)
	}
	if err == nil {
		err = c.settings.RunDir.Keep(directive.Files, static.Files)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// awaitWorkers waits until all workers of a configuration accept connections and
// no older one does. Responses of the new ones are not enough: NGINX signals the
// old ones to stop 100 ms later.
func (c *Controller) awaitWorkers(ctx context.Context, next plan.Static) error {
	ctx, cancel := context.WithTimeout(ctx, c.settings.Timing.WorkerTimeout)
	defer cancel()
	fresh, old := 0, 0
	for {
		if state, err := c.client.State(ctx); err == nil {
			fresh, old = c.workers.Accepting(state, c.settings.Process.PID(), next.Generation)
			if fresh >= next.Workers && old == 0 {
				time.Sleep(c.settings.Timing.Drain / 4) // An old worker may have a new connection, and needs its own units for the request.
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if fresh > 0 {
				c.log.Warn("NGINX was reloaded, but its workers are not as expected",
					"generation", next.Generation, "new", fresh, "wanted", next.Workers, "old", old)
				return nil
			}
			return fmt.Errorf("NGINX tested the configuration, but did not apply it (its log says why): no worker of generation %d", next.Generation)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
