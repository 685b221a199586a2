package edge

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/internal/controller/edge/budget"
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
	// due is when the next reload may begin, and drained when the drain is over.
	due, drained *alarm

	// budget is that of hosts, and share what a namespace has of its own; heldBy is why they wait
	// now, and until when.
	budget   budget.Budget
	share    budget.Share
	until    time.Time
	heldBy   heldBy
	reported reported
	// look is when to look at old workers, while there are any.
	look *alarm
}

// pending reports whether a reload is in progress or waits for its time. A
// rejected one is not pending: it has no effect until something changes.
func (r *reload) pending() bool {
	return r.next != nil || r.due.isSet() && r.failures == 0
}

// drop ends a reload in progress. The result of a test that still runs is not looked at.
func (r *reload) drop() {
	r.next = nil
	r.drained.stop()
	r.due.stop()
}

// candidate is the file that is tested.
const candidate = "nginx.conf.next"

// considerReload begins a reload if a static file differs, unless a reload is in
// progress or the last one was too recent.
func (e *Edge) considerReload(ctx context.Context) {
	r := &e.reload
	if r.next != nil {
		return
	}
	next, reason, err := e.desired.Next(e.settings.Environment, e.static, r.larger)
	if err != nil {
		e.settings.Log.Error("planning nginx.conf failed", "error", err)
		return
	}
	if reason == "" {
		e.static = next
		e.settings.Families.Unchanged()
		r.due.stop()
		r.heldBy = ""
		return
	}
	if !plan.SameFiles(r.rejected, next.Files) {
		r.failures = 0
	}
	if early := e.settings.Timing.interval(r.failures) - time.Since(r.last); early > 0 {
		e.considerAfter(early)
		return
	}
	if wait := e.boundReload(); wait > 0 {
		e.considerAfter(wait)
		return
	}
	r.due.stop()
	file := filepath.Join(e.settings.RunDir.Path(), candidate)
	files := maps.Clone(next.Files)
	files[candidate] = files[nginxconf.File]
	delete(files, nginxconf.File)
	err = e.settings.RunDir.Restore()
	if err == nil {
		err = e.settings.RunDir.Write(files)
	}
	if err != nil {
		e.failReload(next, fmt.Errorf("write nginx.conf: %w", err))
		return
	}
	r.next, r.reason = &next, reason
	go func() {
		err := e.settings.Process.Test(ctx, file)
		e.events.Post(func(ctx context.Context) {
			if r.next == &next {
				e.testedReload(ctx, err)
			}
		})
	}()
}

// considerAfter begins a reload after a time, if one is needed then.
func (e *Edge) considerAfter(wait time.Duration) {
	e.reload.due.stop()
	e.reload.due = e.after(wait, func(ctx context.Context) {
		e.considerReload(ctx)
		e.noteWaiting()
	})
}

// interval is the minimum time until the next reload after some failures.
func (t Timing) interval(failures int) time.Duration {
	return t.ReloadInterval << min(failures, 5)
}

// testedReload continues with a configuration that passed its test.
func (e *Edge) testedReload(ctx context.Context, err error) {
	if err == nil {
		e.logDifference(ctx)
		err = e.client.Draining(ctx, true)
	}
	if err != nil {
		e.endDrain(ctx)
		e.failReload(*e.reload.next, err)
		e.testAgain(ctx, err)
		return
	}
	e.reload.drained = e.after(e.settings.Timing.Drain, e.finishReload)
}

const (
	// maxDifference bounds what is logged of the difference between two nginx.conf.
	maxDifference     = 64 << 10
	differenceTimeout = 5 * time.Second
)

// logDifference logs, for debugging, what changes in nginx.conf.
func (e *Edge) logDifference(ctx context.Context) {
	if !e.settings.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, differenceTimeout)
	defer cancel()
	dir := e.settings.RunDir.Path()
	// It exits with 1 if the files differ.
	text, err := exec.CommandContext(ctx, "diff", "--unified", filepath.Join(dir, nginxconf.File), filepath.Join(dir, candidate)).Output()
	if len(text) == 0 {
		e.settings.Log.Debug("comparing nginx.conf failed", "error", err)
		return
	}
	e.settings.Log.Debug("nginx.conf changes", "difference", string(text[:min(len(text), maxDifference)]))
}

// failReload leaves NGINX with its current configuration.
func (e *Edge) failReload(next plan.Static, err error) {
	r := &e.reload
	r.drop()
	r.rejected = next.Files
	r.last = time.Now()
	r.failures++
	again := e.settings.Timing.interval(r.failures)
	e.considerAfter(again)
	e.settings.Metrics.ReloadFailures.Inc()
	e.settings.History.Reload(r.reason, next.Generation, 0, err)
	e.settings.Families.Rejected()
	e.settings.Log.Error("reload failed; NGINX keeps its configuration", "error", err, "again_in", again)
	e.noticeReload(err)
	e.noteServed()
	e.noteWaiting()
}

// finishReload reloads NGINX, waits until only new workers accept connections,
// and pushes the held units.
func (e *Edge) finishReload(ctx context.Context) {
	r := &e.reload
	next, reason := *r.next, r.reason
	r.drop()
	r.last = time.Now()
	previous := e.static
	err := e.takeOver(ctx, next)
	if err != nil {
		e.onlyAddresses(previous)
		if writeErr := e.write(previous); writeErr != nil {
			e.settings.Log.Error("restoring the last good nginx.conf failed", "error", writeErr)
		}
		e.static.Tried = next.Generation
		e.endDrain(ctx)
		e.failReload(next, err)
		e.blameTexts(ctx, next, previous, err)
		return
	}
	r.rejected, r.failures = nil, 0
	r.larger = nil
	e.static = next
	e.onlyAddresses(next)
	e.settings.Metrics.Reloads.Inc()
	for _, reason := range plan.ReloadReasons(previous, next) {
		e.settings.Metrics.ReloadReasons.WithLabelValues(string(reason)).Inc()
	}
	e.noteConfigured()
	took := time.Since(r.last)
	e.settings.Log.Info("reloaded NGINX", "reason", reason, "generation", next.Generation, "took", took.Round(time.Millisecond))
	e.settings.History.Reload(reason, next.Generation, took, nil)
	e.noticeReload(nil)
	e.oldGenerations()
	e.endDrain(ctx)
	e.Apply(ctx)
}

func (e *Edge) noticeReload(err error) {
	if e.settings.Reloaded != nil {
		e.settings.Reloaded(err)
	}
}

func (e *Edge) endDrain(ctx context.Context) {
	if err := e.client.Draining(ctx, false); err != nil {
		e.settings.Log.Warn("ending the drain failed", "error", err)
	}
}

func (e *Edge) takeOver(ctx context.Context, next plan.Static) error {
	if err := e.addAddresses(next); err != nil {
		return err
	}
	if err := e.write(next); err != nil {
		return err
	}
	if state, err := e.client.State(ctx); err == nil {
		// From now on these are old. They may have stopped accepting before the next look.
		e.workers.Accepting(state, e.settings.Process.PID(), next.Generation)
	}
	if err := e.settings.Process.Reload(); err != nil {
		return err
	}
	e.client.CloseIdle()
	defer e.client.CloseIdle()
	return e.awaitWorkers(ctx, next)
}

// write puts a configuration where NGINX reads it, its number first: if NGINX
// starts in between, it has a generation for which nothing was pushed. NGINX reads no files
// of other configurations again, which are removed.
func (e *Edge) write(static plan.Static) error {
	err := e.settings.RunDir.WriteGeneration(static.Generation)
	if err == nil {
		err = e.settings.RunDir.Write(static.Files)
	}
	if err == nil {
		err = e.settings.RunDir.Keep(directive.Files, static.Files)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// awaitWorkers waits until all workers of a configuration accept connections and
// no older one does. Responses of the new ones are not enough: NGINX signals the
// old ones to stop 100 ms later.
func (e *Edge) awaitWorkers(ctx context.Context, next plan.Static) error {
	ctx, cancel := context.WithTimeout(ctx, e.settings.Timing.WorkerTimeout)
	defer cancel()
	fresh, old := 0, 0
	for {
		if state, err := e.client.State(ctx); err == nil {
			fresh, old = e.workers.Accepting(state, e.settings.Process.PID(), next.Generation)
			if fresh >= next.Workers && old == 0 {
				time.Sleep(e.settings.Timing.Drain / 4) // An old worker may have a new connection, and needs its own units for the request.
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if fresh > 0 {
				e.settings.Log.Warn("NGINX was reloaded, but its workers are not as expected",
					"generation", next.Generation, "new", fresh, "wanted", next.Workers, "old", old)
				return nil
			}
			return fmt.Errorf("NGINX tested the configuration, but did not apply it (its log says why): no worker of generation %d", next.Generation)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
