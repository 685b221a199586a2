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
	enter := func(owner string) {
		t.Helper()
		if !l.acquire(t.Context(), owner) {
			t.Fatal("did not enter")
		}
	}
	for _, owner := range []string{"a", "b", "c", "d"} {
		enter(owner)
		enter(owner)
		if l.acquire(ended, owner) {
			t.Errorf("%s has more than its share", owner)
		}
	}
	if l.acquire(ended, "e") {
		t.Error("more in the lane than it holds")
	}
	l.release("a")
	enter("e")
	for _, owner := range []string{"a", "b", "b", "c", "c", "d", "d", "e"} {
		l.release(owner)
	}
	if len(l.owners) != 0 || len(l.slots) != 0 {
		t.Errorf("left: %d owners, %d slots", len(l.owners), len(l.slots))
	}
}
