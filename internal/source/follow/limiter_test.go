package follow

import (
	"context"
	"testing"
)

// TestLane: an owner has a quarter of it, and leaves nothing behind.
func TestLane(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := newLimiter(8)
	inside := map[string][]func(){}
	enter := func(owner string) {
		t.Helper()
		release := l.acquire(t.Context(), owner)
		if release == nil {
			t.Fatal("did not enter")
		}
		inside[owner] = append(inside[owner], release)
	}
	for _, owner := range []string{"a", "b", "c", "d"} {
		enter(owner)
		enter(owner)
		if l.acquire(ended, owner) != nil {
			t.Errorf("%s has more than its share", owner)
		}
	}
	if l.acquire(ended, "e") != nil {
		t.Error("more in the lane than it holds")
	}
	inside["a"][0]()
	inside["a"] = inside["a"][1:]
	enter("e")
	for _, releases := range inside {
		for _, release := range releases {
			release()
		}
	}
	if len(l.owners) != 0 || len(l.slots) != 0 {
		t.Errorf("left: %d owners, %d slots", len(l.owners), len(l.slots))
	}
}
