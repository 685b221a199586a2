package model

import "time"

// Tries are how many endpoints a request may ask where nothing else is said, and
// MaxTries how many an Ingress may have it ask: as many may be kept busy by it.
const (
	Tries    = 3
	MaxTries = 100
)

// Timeouts of a request to a backend where nothing else is said.
const (
	ConnectTimeout = 5 * time.Second
	SendTimeout    = 60 * time.Second
	ReadTimeout    = 60 * time.Second
)
