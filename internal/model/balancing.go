package model

import "time"

// Balancing is how the requests to a backend are spread. The oldest Ingress
// that uses the backend owns it. Equal values compare as equal.
type Balancing struct {
	// ServiceAddress sends all requests to the address of the Service itself,
	// which spreads them by its own means.
	ServiceAddress bool
	// Picker chooses the endpoint of each try: its feature has the Lua module
	// headgate.feature.NAME.picker, and the value is its settings, plain data that
	// compares with ==. The zero value is round robin.
	Picker Policy
	// Sessions is set if sessions stay at an endpoint until it ends: the picker, or that
	// of a backend that this one is a canary of, keeps sessions.
	Sessions bool
	// SlowStart is the time in which an endpoint that is added comes to its share of the
	// requests, 0 for at once.
	SlowStart time.Duration
}
