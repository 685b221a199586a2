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

// ReloadBurst is how many reloads hosts may cause at once, by combinations of static
// settings that NGINX does not have. Key reload-burst; finding Waits (A5).
const ReloadBurst = 5

// ReloadInterval is how long it takes until hosts may cause one more reload. Key
// reload-interval; finding Waits (A5).
const ReloadInterval = time.Minute

// OldGenerations is how many generations of old workers may be alive when hosts cause a
// reload. Key reload-generations; finding Waits (A5).
const OldGenerations = 3
