package run

import (
	"context"
	"os"
	"runtime/debug"
	"time"
)

const (
	// afterLoad is how long after the first load what it was made of is garbage.
	afterLoad = 5 * time.Second
	// garbage is how much of the heap may be garbage from then on, in percent of the rest.
	garbage = 50
)

// releaseMemory gives back to the machine what the start took, once the first load is served: reading all objects leaves as
// much garbage as they take themselves, and the runtime would keep the room for more of it. Changes need little of that.
// Where $GOGC is set, it decides how much.
func releaseMemory(ctx context.Context, serving <-chan struct{}, after time.Duration) {
	select {
	case <-serving:
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	debug.FreeOSMemory()
}
