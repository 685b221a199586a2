package run

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
)

// TestReleaseMemory: nothing happens before the first load is served. Then garbage is given back, and less is left from then
// on, unless GOGC says how much.
func TestReleaseMemory(t *testing.T) {
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	defer debug.SetGCPercent(percent())
	const much = 64 << 20
	serving := make(chan struct{})
	for _, c := range []struct {
		name, gogc   string
		loaded       bool
		want         int
		wantReleased bool
	}{{name: "before the load", want: 100}, {"after it", "", true, garbage, true}, {"with GOGC", "80", true, 100, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOGC", c.gogc)
			debug.SetGCPercent(100)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.loaded {
				close(serving)
				defer func() { serving = make(chan struct{}) }()
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
			if got := percent(); got != c.want {
				t.Errorf("%d %% may be garbage, want %d", got, c.want)
			}
			if released := after.HeapReleased >= before.HeapReleased+much/2; released != c.wantReleased {
				t.Errorf("%d bytes were given back before, and %d are now; want more: %t", before.HeapReleased, after.HeapReleased, c.wantReleased)
			}
		})
	}
}
