package source

import (
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HealthCheck is how endpoints are checked: model.HealthCheck has what the fields mean.
type HealthCheck struct {
	GRPC, TLS          bool
	Target, Host       string
	Port               uint16
	Interval, Timeout  time.Duration
	Unhealthy, Healthy int
}

// A Checked is a backend whose endpoints are to be checked.
type Checked struct {
	// Backend is its key, and Namespace the one whose share of checks it takes.
	Backend, Namespace string
	// Endpoints are sorted and without duplicates. Without any, checks of the backend end.
	Endpoints []netip.AddrPort
	Check     HealthCheck
}

// Health is which endpoints of a backend are unhealthy, as an object. Its name is the key of
// the backend, and its namespace is empty.
type Health struct {
	metav1.ObjectMeta
	// Unhealthy are sorted by their addresses.
	Unhealthy []UnhealthyEndpoint
}

// An UnhealthyEndpoint is one whose check fails. Why is the check and its result; it stays the
// same while the endpoint is unhealthy.
type UnhealthyEndpoint struct {
	Address netip.AddrPort
	Why     string
}
