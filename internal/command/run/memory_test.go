package run

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
)

// TestLimitGarbage: where GOGC is set, it decides.
func TestLimitGarbage(t *testing.T) {
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	defer debug.SetGCPercent(percent())
	for gogc, want := range map[string]int{"": garbage, "80": 100} {
		t.Setenv("GOGC", gogc)
		debug.SetGCPercent(100)
		limitGarbage()
		if got := percent(); got != want {
			t.Errorf("GOGC %q: %d %% may be garbage, want %d", gogc, got, want)
		}
	}
}

// TestReleaseMemory: nothing happens before the first load is served. Then garbage is given back.
func TestReleaseMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const much = 64 << 20
	for _, loaded := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		serving := make(chan struct{})
		if loaded {
			close(serving)
		} else {
			cancel()
		}
		taken := make([]byte, much)
		for i := 0; i < much; i += 4096 {
			taken[i] = 1
		}
		runtime.KeepAlive(taken)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		releaseMemory(ctx, serving, 0)
		runtime.ReadMemStats(&after)
		if released := after.HeapReleased >= before.HeapReleased+much/2; released != loaded {
			t.Errorf("loaded %t: %d bytes were given back before, and %d are now", loaded, before.HeapReleased, after.HeapReleased)
		}
	}
}
