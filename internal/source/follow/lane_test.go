package follow

import (
	"context"
	"testing"
)

// TestLane: an owner has a quarter of it, and leaves nothing behind.
func TestLane(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := newLane(8)
	enter := func(owner string) {
		t.Helper()
		if !l.enter(t.Context(), owner) {
			t.Fatal("did not enter")
		}
	}
	for _, owner := range []string{"a", "b", "c", "d"} {
		enter(owner)
		enter(owner)
		if l.enter(ended, owner) {
			t.Errorf("%s has more than its share", owner)
		}
	}
	if l.enter(ended, "e") {
		t.Error("more in the lane than it holds")
	}
	l.leave("a")
	enter("e")
	for _, owner := range []string{"a", "b", "b", "c", "c", "d", "d", "e"} {
		l.leave(owner)
	}
	if len(l.owners) != 0 || len(l.slots) != 0 {
		t.Errorf("left: %d owners, %d slots", len(l.owners), len(l.slots))
	}
}
