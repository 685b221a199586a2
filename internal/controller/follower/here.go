package follower

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/geo"
	"github.com/headgate/headgate/internal/unit"
)

// here is what only this machine knows of globals.
type here struct {
	// wanted are the addresses that the control names, and could whether each could be listened on.
	wanted []netip.Addr
	could  map[netip.Addr]bool
	// last are the addresses of the globals that were set last.
	last []netip.Addr
	// databases are those that were looked for on this machine, which has its own.
	databases []feature.GeoDatabase
}

// lookInterval is that of looks at the machine's addresses.
const lookInterval = 5 * time.Second

// localize has globals name what this machine has: addresses, and databases of where addresses are.
func (f *Follower) localize(g *model.Globals) (findings []finding.Finding) {
	here := &f.here
	here.wanted, here.could = g.Process.Listening.Addresses, map[netip.Addr]bool{}
	var wrong []error
	var list []netip.Addr
	for _, a := range here.wanted {
		err := f.edge.CanListen(a)
		if here.could[a] = err == nil; err == nil {
			list = append(list, a)
		} else {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) > 0 {
		effect := "listening on the other addresses"
		if len(list) == 0 {
			// See package listen: who names addresses does not want others to be open.
			effect = "still listening on those before"
			if list = here.last; len(list) == 0 {
				list, effect = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, "listening on 127.0.0.1 alone"
			}
		}
		for _, err := range wrong {
			findings = append(findings, finding.Finding{
				Object: thisEdge, Field: "bind-address", Code: finding.UnavailablePort, Message: err.Error(), Effect: effect + " until it is there",
			})
		}
		g.Process.Listening.Addresses = list
	}
	here.last = g.Process.Listening.Addresses
	if g.Process.Geo.On {
		f.wantDatabases()
		var wrong []finding.Finding
		g.Process.Geo.Databases, wrong = here.found()
		findings = append(findings, wrong...)
	}
	return findings
}

// found are the databases that there are, and what is wrong with others.
func (h *here) found() (list []geo.Database, findings []finding.Finding) {
	for _, edition := range geo.Editions() {
		at := slices.IndexFunc(h.databases, func(d feature.GeoDatabase) bool { return d.Edition == edition.String() })
		if at < 0 {
			continue
		}
		d := h.databases[at]
		if d.Digest != "" {
			list = append(list, geo.Database{Edition: edition, Digest: d.Digest})
		}
		if d.Problem != "" {
			effect := "the last good database is used"
			if d.Digest == "" {
				effect = "its variables are empty"
			}
			findings = append(findings, finding.Finding{
				Object: thisEdge, Field: "use-geoip2", Code: finding.MissingObject, Message: edition.String() + ": " + d.Problem, Effect: effect,
			})
		}
	}
	return list, findings
}

// thisEdge is the object of findings about this machine.
const thisEdge = "this edge"

// lookAtAddresses sets the globals again if an address has come or gone.
func (f *Follower) lookAtAddresses(ctx context.Context) {
	for a, could := range f.here.could {
		if could != (f.edge.CanListen(a) == nil) {
			f.set(unit.GlobalsKey)
			f.edge.Apply(ctx)
			return
		}
	}
}

// SetDatabase says what is known of a database of where addresses are on this machine. It returns once that is
// taken, or when ctx ends.
func (f *Follower) SetDatabase(ctx context.Context, d feature.GeoDatabase) error {
	return f.call(ctx, func(ctx context.Context) {
		f.here.databases = append(slices.DeleteFunc(f.here.databases, func(old feature.GeoDatabase) bool { return old.Edition == d.Edition }), d)
		if f.configured {
			f.set(unit.GlobalsKey)
			f.edge.Apply(ctx)
		}
	})
}

// AppliedNames are the names of the units of a kind that NGINX has, sorted.
func (f *Follower) AppliedNames(ctx context.Context, kind unit.Kind) (names []string, err error) {
	err = f.call(ctx, func(context.Context) { names = f.edge.AppliedNames(kind) })
	return names, err
}

// call runs something between two changes.
func (f *Follower) call(ctx context.Context, do func(context.Context)) error {
	done := make(chan struct{})
	select {
	case f.calls <- func(ctx context.Context) { defer close(done); do(ctx) }:
	case <-f.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}
