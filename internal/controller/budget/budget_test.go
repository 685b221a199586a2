package budget_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/budget"
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
