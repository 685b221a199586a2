package controller

import (
	"context"
	"net/netip"
	"time"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// A half has what was built served: by NGINX here (package edge), or by edges (package publisher).
// It is called by the goroutine of the Controller, which also runs its events.
type half interface {
	// Set takes what was built, for the next Apply, and returns findings about what becomes of it. Expect
	// notes that a host is to be set again, later than what changed with it.
	Set(unit.Built) []finding.Finding
	Expect(host string)
	// Start begins to serve what was set. Apply has what was set since served, too.
	Start(context.Context) error
	Apply(context.Context)
	// Rebound returns hosts that are to be set again, since they get other profiles.
	Rebound() []string
	// Events are to be run between two changes. Run looks after what is served until ctx ends; wait ends the
	// events.
	Events() <-chan func(context.Context)
	Run(context.Context) (wait func())

	// Ready and Check report whether all of the first load is served; Serving is closed then.
	Ready() bool
	Check(context.Context) error
	Serving() <-chan struct{}
	// Leave prepares for the end, which may take ShutdownTimeout.
	Leave(ctx context.Context, grace time.Duration)
	ShutdownTimeout() time.Duration

	// Globals are those that are served, and CanListen is why an address can't be listened on.
	Globals() model.Globals
	CanListen(netip.Addr) error
	// Count and AppliedNames are about the units of a kind, and BoundProfiles replaces profiles by those
	// that are served.
	Count(unit.Kind) int
	AppliedNames(unit.Kind) []string
	BoundProfiles(*model.Host) []finding.Finding
	// DrainOCSPChanges returns the certificates whose OCSP responses are wanted from now on, and the hashes of
	// those of which they no longer are.
	DrainOCSPChanges() (added []model.Certificate, removed []string)
}
