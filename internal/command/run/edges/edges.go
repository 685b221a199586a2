// Package edges serves the edges of a control: it publishes units for them, and takes their reports, over connections
// that they open.
//
// It ties the parts together that do so. Who is an edge is handed in.
package edges

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/groups"
	"github.com/headgate/headgate/internal/controller/publisher"
	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/link"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/xds"
)

// Edges are those of a control.
type Edges struct {
	// Publisher publishes for them.
	Publisher *publisher.Publisher

	groups   *groups.Groups
	reports  *reports.Edges
	server   *link.Server
	listener net.Listener
}

// Listen opens the port for edges. It is served by Serve. unknown is the group of namespaces whose objects are not known,
// empty for none.
func Listen(address string, settings link.ServerSettings, unknown string, registry prometheus.Registerer) (*Edges, error) {
	store := publish.New()
	e := &Edges{
		Publisher: publisher.New(store, settings.Log),
		groups:    groups.New(groups.Settings{Unknown: unknown, Appeared: store.Appeared, Moved: store.Regroup}),
	}
	settings.MaxMessage, settings.Codec = xds.MaxMessage, xds.Codec()
	e.server = link.NewServer(settings)
	// A token is of one edge. A certificate from elsewhere may be that of many.
	shown := named
	if settings.Review != nil {
		shown = nil
	}
	(&xds.Server{
		Store: store,
		Identify: func(ctx context.Context) (xds.Edge, error) {
			who, err := link.Peer(ctx)
			return xds.Edge{Name: who.Name, Takes: e.groups.Takes(who.Group)}, err
		},
		Named: shown, Ready: e.Publisher.Ready, Streams: e.Publisher,
	}).Register(e.server)
	e.reports = reports.NewEdges(func(ctx context.Context) (name, group string, err error) {
		who, err := link.Peer(ctx)
		return who.Name, who.Group, err
	})
	e.reports.Named = shown
	e.reports.Sees = func(group string, key unit.Key) bool { return store.Sees(key, e.groups.Takes(group)) }
	e.reports.Register(e.server)
	var err error
	if e.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("listen for edges: %w", err)
	}
	e.register(registry, store)
	return e, nil
}

// named is the name of a certificate with the one that an edge says, if that may be one.
func named(certificate, said string) string {
	if said == certificate || (link.Identity{Name: said}).Validate() != nil {
		return certificate
	}
	return certificate + "/" + said
}

// register registers the metrics of a control.
func (e *Edges) register(registry prometheus.Registerer, store *publish.Store) {
	edges := func(state string, number func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "headgate_edges", ConstLabels: prometheus.Labels{"state": state},
			Help: "Of a control, the number of edges that are connected, by whether they have all changes (current) or lack some (behind).",
		}, func() float64 { return float64(number()) })
	}
	registry.MustRegister(
		edges("current", func() int { current, _ := e.Publisher.Edges(); return current }),
		edges("behind", func() int { _, behind := e.Publisher.Edges(); return behind }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "headgate_published_bytes", Help: "Of a control, the size in bytes of all units that it publishes for edges.",
		}, func() float64 { return float64(store.Size().Bytes) }),
	)
}

// Follow is a source whose namespaces are known to groups before what they have is.
func (e *Edges) Follow(run controller.Source) controller.Source {
	return func(ctx context.Context, deliver func(context.Context, []source.Change)) error {
		return run(ctx, func(ctx context.Context, changes []source.Change) {
			e.groups.Put(changes...)
			deliver(ctx, changes)
		})
	}
}

// Serve serves edges until Close.
func (e *Edges) Serve() error { return e.server.Serve(e.listener) }

// Close ends all streams: edges connect to another control, or serve on with what they have.
func (e *Edges) Close() {
	if e != nil {
		e.server.Stop()
	}
}

// Ask asks the workers of all edges for their state, and which versions of units they have.
func (e *Edges) Ask(ctx context.Context, units []unit.Key) []reports.Answer {
	return e.reports.Ask(ctx, units)
}

// Requests are those that edges have served since the start of this control, by host.
func (e *Edges) Requests() map[string]reports.Counts { return e.reports.Requests() }

// List are the edges for the API.
func (e *Edges) List() []adminapi.Edge {
	var list []adminapi.Edge
	for _, edge := range e.reports.List() {
		says, heard := edge.Status, edge.At
		if heard.IsZero() {
			heard = edge.Since
		}
		list = append(list, adminapi.Edge{
			Name: edge.Name, Group: edge.Group, Since: edge.Since, Reported: !edge.At.IsZero(), Silent: time.Since(heard) > silentAfter,
			Release: says.Release, NGINX: says.NGINX, Started: says.Started,
			Serving: says.Serving, Synced: says.Synced, Problem: says.Problem, Findings: says.Findings, MoreFindings: says.MoreFindings,
		})
	}
	return list
}

// silentAfter is how long an edge may say nothing before that is a problem.
const silentAfter = 10 * time.Second
