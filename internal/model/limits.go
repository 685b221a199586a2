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

// MaxHostRoutes is how many paths of Ingresses a host may have. The oldest Ingresses' are
// served; finding TooMany (A2, A7).
const MaxHostRoutes = 5000

// MaxHostBytes is about how long the payload of a host may be, in bytes: workers decode it
// as a whole. The oldest Ingresses' paths and canaries are served; finding TooMany (A7).
const MaxHostBytes = 512 << 10

// MaxHostDenials and MaxHostDenialBytes are how many paths beyond MaxHostRoutes and
// MaxHostBytes are denied one by one, and how many bytes these may have together; finding
// TooMany (A7).
const (
	MaxHostDenials     = 500
	MaxHostDenialBytes = 64 << 10
)

// MaxHostCalls is how many paths of auth services on a host itself are compared with the
// regular expressions of the host, to find out whether it answers them. Further ones are
// asked of the addresses of its name (A2).
const MaxHostCalls = 4
