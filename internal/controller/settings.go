package controller

import (
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/observe/expiry"
	"github.com/headgate/headgate/internal/observe/history"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracing"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/store"
)

// Settings are the parts and options of a Controller.
type Settings struct {
	Store    store.Settings
	Features []feature.Feature
	// AnnotationPrefix is the prefix of annotations, without the slash.
	AnnotationPrefix string
	Environment      nginxconf.Environment
	// Dictionaries to start with. If nil, their sizes are computed from the units.
	Dictionaries *nginxconf.Dictionaries
	Process      *nginx.Process
	RunDir       *rundir.Dir
	Metrics      *metrics.Metrics
	// Families are ingress-nginx's metrics; nil if there are none.
	Families *metrics.Families
	// Tracker keeps the findings of all units.
	Tracker *tracker.Tracker
	Log     *slog.Logger
	// Timing of reloads.
	Timing Timing
	// Expiry follows the certificates that names show.
	Expiry *expiry.Watch
	// Subscriptions are the functions by which sources learn of references.
	Subscriptions Subscriptions
	// Selected receives the Ingresses that are served or no longer served, once
	// NGINX serves them. It must not block. It may be nil.
	Selected func(store.Selection)
	// Notices report what was done, for Events.
	Notices Notices
	// Streams serves TCP and UDP services. It may be nil.
	Streams Streams
	// Traffic counts requests; nil if they are not counted.
	Traffic *traffic.Table
	// Tracing exports spans of requests; nil if nothing does.
	Tracing *tracing.Exporter
	// Passthrough passes TLS connections through. It may be nil.
	Passthrough Passthrough
	// Overview and History are what people look at. They may be nil.
	Overview *overview.Table
	History  *history.Log
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

// Notices are functions that report what was done. They must not block. Each
// may be nil.
type Notices struct {
	// Served reports each Ingress that was added or changed after the first
	// load and is served.
	Served func(ingress types.NamespacedName)
	// Reloaded reports each reload, with the error if it failed.
	Reloaded func(err error)
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
