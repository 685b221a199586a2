package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// A Profile is the tuple of settings that NGINX takes only statically. Routes
// with equal profiles share one location; a new profile costs a reload.
type Profile struct {
	// Buffering reads a backend's answer ahead of the client.
	Buffering bool
	// RequestBuffering reads a request's body whole before the backend is
	// asked.
	RequestBuffering bool
	// BufferSize is the size in bytes of one buffer for answers. It bounds an
	// answer's headers too.
	BufferSize int64
	// Buffers is the number of buffers for one answer, 2 or more.
	Buffers int
	// BodyStep is the size in bytes at which NGINX cuts a request's body, 0
	// for no limit. It is the route's exact limit or the step above it.
	BodyStep int64
	// MeasureBody is set where BodyStep is above the exact limit: bodies that
	// do not announce their length are measured once they are buffered.
	MeasureBody bool
}

// Name is a name that only an equal profile has: equal tuples, equal names, on
// every replica and in every version that knows the same settings.
func (p Profile) Name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", p))
	return "p_" + hex.EncodeToString(sum[:6])
}

// Process is what the NGINX process is told, from the ConfigMap's keys.
type Process struct {
	// Workers is the number of worker processes, 0 for one a core.
	Workers int
	// ShutdownTimeout is how long an old worker may finish its connections.
	ShutdownTimeout time.Duration
	// AccessLog writes a line for each request.
	AccessLog bool
	// HTTP2 offers HTTP/2 on TLS connections.
	HTTP2 bool
	// ClientKeepalive is how long an idle client connection stays open; 0
	// closes it after each answer.
	ClientKeepalive time.Duration
	// ClientRequests is the number of requests that one client connection
	// may carry.
	ClientRequests int
	// ClientHeaderTimeout and ClientBodyTimeout bound how long a client may
	// take over a request's head, and between two reads of its body.
	ClientHeaderTimeout, ClientBodyTimeout time.Duration
	// BackendConnections is the number of idle connections to backends that
	// a worker keeps; 0 keeps none.
	BackendConnections int
	// BackendRequests is the number of requests that one backend connection
	// may carry.
	BackendRequests int
	// BackendIdle is how long a backend connection may idle, BackendAge how
	// old it may grow.
	BackendIdle, BackendAge time.Duration
	// ServerTokens leaves the Server header in answers.
	ServerTokens bool
	// HSTS is what answers over https say of Strict-Transport-Security.
	HSTS HSTS
}

// HSTS is the content of a Strict-Transport-Security header.
type HSTS struct {
	On bool
	// MaxAge is in seconds.
	MaxAge              int
	Subdomains, Preload bool
}

// Value is the header's value.
func (h HSTS) Value() string {
	value := "max-age=" + strconv.Itoa(h.MaxAge)
	if h.Subdomains {
		value += "; includeSubDomains"
	}
	if h.Preload {
		value += "; preload"
	}
	return value
}
