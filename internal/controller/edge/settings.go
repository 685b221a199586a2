package edge

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/observe/history"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracing"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// Settings are the parts and options of an Edge.
type Settings struct {
	Features    []feature.Feature
	Environment nginxconf.Environment
	// Dictionaries to start with. If nil, their sizes are computed from the units.
	Dictionaries *nginxconf.Dictionaries
	Process      *nginx.Process
	RunDir       *rundir.Dir
	Metrics      *metrics.Metrics
	// Families are ingress-nginx's metrics; nil if there are none.
	Families *metrics.Families
	// Tracker keeps the findings about what waits, and what NGINX gave up on.
	Tracker *tracker.Tracker
	Log     *slog.Logger
	// Timing of reloads.
	Timing Timing
	// Reloaded is called after each reload, with the error if it failed. It must not block. It may be nil.
	Reloaded func(err error)
	// Streams serves TCP and UDP services. It may be nil.
	Streams Streams
	// Traffic counts requests; nil if they are not counted.
	Traffic *traffic.Table
	// Tracing exports spans of requests; nil if nothing does.
	Tracing *tracing.Exporter
	// Passthrough passes TLS connections through. It may be nil.
	Passthrough Passthrough
	// History is what people look at. It may be nil.
	History *history.Log
}

// Streams opens and closes the ports of TCP and UDP services. Its methods must not block.
type Streams interface {
	// Listen sets the addresses to listen on, empty for all.
	Listen(addresses []netip.Addr)
	// Configure sets what applies to all of them, and how long connections of a port that
	// was closed go on.
	Configure(settings model.StreamSettings, drain time.Duration)
	// Set opens or changes the port of a stream, by its name; nil closes it.
	Set(name string, wanted *model.Stream)
}

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
	// CommonProfiles are there from the start of NGINX. Tests of reloads leave them out.
	CommonProfiles bool
}

// DefaultTiming loses no request of a client that keeps sending.
func DefaultTiming() Timing {
	return Timing{Drain: 700 * time.Millisecond, ReloadInterval: 2 * time.Second, WorkerTimeout: 10 * time.Second}
}
