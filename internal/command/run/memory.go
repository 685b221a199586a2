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
	// garbage is how much of the heap may be garbage, in percent of the rest.
	garbage = 50
)

// limitGarbage has the runtime keep less garbage than it does by itself, unless $GOGC says how much. With an API server, to
// read all objects leaves much of it at once, a start takes hardly longer for less of it, and changes need little. To read YAML
// leaves many times as much, so this comes behind the first load of a folder.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// releaseMemory gives back to the machine what the start took, once the first load is served.
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
	limitGarbage()
	debug.FreeOSMemory()
}
