package option

import (
	"testing"
	"time"
)

func TestStatusInterval(t *testing.T) {
	for given, want := range map[int]time.Duration{-1: 5 * time.Second, 4: 5 * time.Second, 6: 6 * time.Second} {
		if got := (&Status{statusUpdateInterval: given}).StatusInterval(); got != want {
			t.Errorf("--status-update-interval %d is %v, want %v", given, got, want)
		}
	}
}
