package controller

import "time"

// Timing is how long the steps of a reload take.
type Timing struct {
	// Drain is how long clients are asked to close their connections before a
	// reload or the end of NGINX does it.
	Drain time.Duration
	// ReloadInterval is the minimum time between two reloads.
	ReloadInterval time.Duration
	// WorkerTimeout is the maximum time to wait until no old worker accepts
	// connections.
	WorkerTimeout time.Duration
	// Unbounded lets hosts cause any number of reloads. Tests use it.
	Unbounded bool
}

// DefaultTiming loses no request of a client that keeps sending.
func DefaultTiming() Timing {
	return Timing{Drain: 700 * time.Millisecond, ReloadInterval: 2 * time.Second, WorkerTimeout: 10 * time.Second}
}
