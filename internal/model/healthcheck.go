package model

import (
	"net/netip"
	"time"
)

// A HealthCheck is how the endpoints of a backend are checked: by a request of Headgate's
// own to each of them, again and again. The zero value is none.
type HealthCheck struct {
	// GRPC asks the health service of gRPC, otherwise it is a GET.
	GRPC bool
	// TLS is used without verification.
	TLS bool
	// Target is the path of the GET, or the gRPC service to ask for, empty for the whole
	// server.
	Target string
	// Host is the Host header and the name for TLS, empty for the endpoint's address.
	Host string
	// Port is asked instead of the endpoint's, unless it is 0.
	Port uint16
	// Interval is the time between two checks of an endpoint, and Timeout the longest that
	// one takes.
	Interval, Timeout time.Duration
	// Unhealthy is how many checks must fail in a row until an endpoint is unhealthy, and
	// Healthy how many must succeed until it is healthy again.
	Unhealthy, Healthy int
}

// An UnhealthyEndpoint is one whose health check fails.
type UnhealthyEndpoint struct {
	Address netip.AddrPort
	// Why is the check and its result, as "GET /healthz: status 500, 3 times in a row". It
	// stays the same while the endpoint is unhealthy.
	Why string
}

// Health is which endpoints of a backend are checked, and the result.
type Health struct {
	// Checked are sorted and without duplicates.
	Checked []netip.AddrPort
	// Unhealthy are those that fail, sorted. They are not among the backend's endpoints,
	// unless all fail.
	Unhealthy []UnhealthyEndpoint
}
