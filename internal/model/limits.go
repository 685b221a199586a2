package model

import "time"

// Tries is the default of how many endpoints a request is sent to, and MaxTries what
// an Ingress may set: one request can keep that many busy.
const (
	Tries    = 3
	MaxTries = 100
)

// Default timeouts of a request to a backend.
const (
	ConnectTimeout = 5 * time.Second
	SendTimeout    = 60 * time.Second
	ReadTimeout    = 60 * time.Second
)
