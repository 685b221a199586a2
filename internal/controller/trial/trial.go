// Package trial has NGINX test what tenants and the administrator write, before it is a part of its configuration:
// directives alone, and texts of the administrator in a whole configuration.
package trial

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/headgate/headgate/internal/controller/retry"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/unit"
)

// New returns trials that a tester makes.
func New(tester feature.Tester, log *slog.Logger) *Trials { return &Trials{tester: tester, log: log} }

// Again fires when units are to be built again whose trials could not be made; nil if there are none.
func (t *Trials) Again() <-chan time.Time { return t.again.Due }

// Untried are these units, with the namespaces whose turns they were in. It ends the wait for them.
func (t *Trials) Untried() map[unit.Key]string {
	t.again.Due = nil
	return t.untried
}

// A tester has a process test directives alone.
type tester struct {
	process *nginx.Process
}

// TestBy has a process test directives alone.
func TestBy(process *nginx.Process) feature.Tester { return tester{process} }

// Tried is the result of an earlier Try, if there was one.
func (t tester) Tried(of feature.Trial) (result error, known bool) {
	return t.process.Tried(trialFor(of))
}

// Try tests directives, if that can be done now.
func (t tester) Try(ctx context.Context, of feature.Trial) error {
	err := t.process.Try(ctx, trialFor(of))
	var rejected *nginx.ConfError
	if err != nil && !errors.As(err, &rejected) {
		return &feature.UntestedError{Err: err}
	}
	return err
}

func trialFor(t feature.Trial) nginx.Trial {
	files := map[string][]byte{}
	for _, c := range t.Files {
		files[directive.Files+"/"+c.Name] = c.Bytes
	}
	return nginx.Trial{Namespace: t.Namespace, Lines: t.Lines, Files: files, Outside: t.Outside}
}

// How long trials may hold up a controller, which does nothing else meanwhile. What is over
// waits for the next time.
const (
	// AtOnce is for units that are built together, InTurn for a turn of the backlog.
	AtOnce = 30 * time.Second
	InTurn = 500 * time.Millisecond
	// trialRatio is how many times as long as trials took that could not be made, the next one waits at least.
	trialRatio = 20
	// trialTimeout bounds one trial.
	trialTimeout = 30 * time.Second
)

var errTrialsTakeLong = &feature.UntestedError{Err: errors.New("tests of other directives have taken too long")}

// Trials are the tests of directives while hosts are built. A test that could not be made, such
// as with a full disk, denies the paths that need it, and their hosts are built again later. So are the globals.
type Trials struct {
	tester feature.Tester
	log    *slog.Logger
	// left is how long trials may still take, until Begin.
	left time.Duration
	// took is how long the trials of the host that is being built took, and failed is set
	// where one of them could not be made.
	took   time.Duration
	failed bool
	// untried are the units with such trials, with the namespaces whose turns they were in.
	untried map[unit.Key]string
	// logged are the reasons that are in the log, while there are such units.
	logged map[string]bool
	// again is when they are built again.
	again retry.Timer
}

// Begin says how long the trials may take that follow.
func (t *Trials) Begin(longest time.Duration) { t.left = longest }

// Run tests directives, or returns the result of an earlier test.
func (t *Trials) Run(of feature.Trial) error {
	if result, known := t.tester.Tried(of); known {
		return result
	}
	return t.time(of.Namespace, func(ctx context.Context) error { return t.tester.Try(ctx, of) })
}

// time runs a test, if there is time left for it.
func (t *Trials) time(namespace string, test func(context.Context) error) error {
	if t.left <= 0 {
		t.failed = true
		return errTrialsTakeLong
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), trialTimeout)
	defer cancel()
	err := test(ctx)
	took := time.Since(began)
	t.took += took
	t.left -= took
	if untested := (*feature.UntestedError)(nil); errors.As(err, &untested) {
		t.failed = true
		t.warn(namespace, untested.Err)
	}
	return err
}

// warn logs once why a test was not made: it is tried every few seconds.
func (t *Trials) warn(namespace string, why error) {
	reason := namespace + ": " + why.Error()
	if t.logged[reason] {
		return
	}
	if t.logged == nil {
		t.logged = map[string]bool{}
	}
	t.logged[reason] = true
	t.log.Warn("directives were not tested, and will be later", "namespace", namespace, "error", why)
}

// Built notes that a unit was built, and returns how long its trials took.
func (t *Trials) Built(key unit.Key, namespace string) time.Duration {
	took, failed := t.took, t.failed
	t.took, t.failed = 0, false
	if !failed {
		if delete(t.untried, key); len(t.untried) == 0 {
			t.again.Done()
			t.logged = nil
		}
		return took
	}
	if t.untried == nil {
		t.untried = map[unit.Key]string{}
	}
	t.untried[key] = namespace
	if t.again.Due == nil {
		t.again.Later()
	}
	if wait := trialRatio * took; wait > t.again.Pause {
		// The trial of a name may wait long for resolvers, and nothing else is done meanwhile.
		t.again.Due = time.After(wait)
	}
	return took
}
