package budget_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge/budget"
	"github.com/headgate/headgate/internal/model"
)

// TestBudget: so many at once, then one for each interval, and never more saved up.
func TestBudget(t *testing.T) {
	t.Parallel()
	limits := model.Process{ReloadBurst: 3, ReloadInterval: time.Minute, OldGenerations: 1}
	var b budget.Budget
	now := time.Unix(1e9, 0)
	take := func(want time.Duration) {
		t.Helper()
		if wait := b.Take(now, limits).Round(time.Second); wait != want {
			t.Errorf("wait %v, want %v", wait, want)
		}
	}
	for range 3 {
		take(0)
	}
	take(time.Minute)
	now = now.Add(20 * time.Second)
	take(40 * time.Second)
	now = now.Add(40*time.Second + time.Millisecond)
	take(0)
	take(time.Minute)
	now = now.Add(24 * time.Hour)
	for range 3 {
		take(0)
	}
	take(time.Minute)
	// The limits of the ConfigMap count from now on.
	limits.ReloadInterval = 10 * time.Second
	now = now.Add(10 * time.Second)
	take(0)
	limits.ReloadInterval = 0
	for range 10 {
		take(0)
	}
}

// TestLimitsWithoutTheFeature: without its feature the process has the usual limits.
func TestLimitsWithoutTheFeature(t *testing.T) {
	t.Parallel()
	if l := budget.Limits(model.Process{}); l.ReloadBurst != model.ReloadBurst || l.ReloadInterval != model.ReloadInterval || l.OldGenerations != model.OldGenerations {
		t.Errorf("%+v", l)
	}
	if l := budget.Limits(model.Process{ReloadBurst: 1}); l.ReloadBurst != 1 || l.ReloadInterval != 0 {
		t.Errorf("%+v", l)
	}
}

// TestPace: the fewer old generations there are, the sooner there is one more reload.
func TestPace(t *testing.T) {
	t.Parallel()
	limits := model.Process{ReloadInterval: time.Minute, OldGenerations: 3}
	for generations, want := range []time.Duration{15 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute, time.Minute} {
		if got := budget.Pace(limits, generations); got != want {
			t.Errorf("%d generations: %v, want %v", generations, got, want)
		}
	}
}

// TestShare: a namespace that had none in the last interval gets a reload, though others have used up
// all, and not a second one. All of these are bounded too.
func TestShare(t *testing.T) {
	t.Parallel()
	limits := model.Process{ReloadBurst: 2, ReloadInterval: time.Minute, OldGenerations: 3}
	var s budget.Share
	now := time.Unix(1e9, 0)
	take := func(want bool, waiting ...string) {
		t.Helper()
		if got := s.Take(now, limits, waiting); got != want {
			t.Errorf("%q: %v, want %v", waiting, got, want)
		}
	}
	s.Note(now, []string{"storm"})
	take(false, "storm")
	take(true, "storm", "quiet")
	take(false, "storm", "quiet")
	take(true, "other")
	take(false, "third")
	now = now.Add(30 * time.Second)
	take(false, "third")
	now = now.Add(30 * time.Second)
	take(true, "third")
	now = now.Add(time.Minute)
	take(true, "storm", "third")
}
