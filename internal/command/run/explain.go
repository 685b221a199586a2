package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// An answerer explains requests in a running controller.
type answerer struct {
	inspect func(context.Context, func(controller.Snapshot)) error
	// settings are those that do not change.
	settings explain.Settings
	// workers asks the workers of NGINX, here or of all edges.
	workers workers
}

// workers asks the workers of NGINX, here or of all edges, for their state and the versions of units.
type workers func(context.Context, []unit.Key) []reports.Answer

// workersHere are those of the NGINX of a socket. The name of their edge is empty.
func workersHere(socket string) workers {
	return func(ctx context.Context, units []unit.Key) []reports.Answer {
		found, err := dataplane.Holdings(ctx, socket, units)
		return []reports.Answer{{Holdings: found, Err: err}}
	}
}

// explain explains a request, with the state of its units in NGINX's workers. An
// *explain.QueryError is a mistake in the query. Any other error means that the
// controller is busy, and the caller may retry later.
func (a answerer) explain(ctx context.Context, q explain.Query) (report.Explanation, error) {
	var explanation report.Explanation
	var wrong error
	err := a.inspect(ctx, func(now controller.Snapshot) {
		settings := a.settings
		settings.Store, settings.Builder, settings.BoundProfiles = now.Store, now.Builder, now.BoundProfiles
		settings.Findings, settings.Now = now.Findings, time.Now()
		explanation, wrong = explain.Explain(q, settings)
	})
	if err := cmp.Or(err, wrong); err != nil {
		return report.Explanation{}, err
	}
	if len(explanation.Units) > 0 {
		for _, asked := range a.holdings(ctx, explanation.Units) {
			if asked.Name == "" {
				explanation.DataPlane = &asked.DataPlane
			} else {
				explanation.Edges = append(explanation.Edges, asked)
			}
		}
	}
	return explanation, nil
}

// units lists the names of the units of a kind that NGINX has.
func (a answerer) units(ctx context.Context, kind unit.Kind) (names []string, err error) {
	err = a.inspect(ctx, func(now controller.Snapshot) { names = now.AppliedNames(kind) })
	return names, err
}

// edgeTimeout bounds a look at the NGINX of edges: one may be gone.
const edgeTimeout = 3 * time.Second

// holdings queries the units in NGINX's workers.
func (a answerer) holdings(ctx context.Context, units []report.Unit) (list []report.Edge) {
	names := make([]unit.Key, len(units))
	for i, u := range units {
		names[i] = unit.Key{Kind: unit.Kind(u.Kind), Name: u.Name}
	}
	ctx, cancel := context.WithTimeout(ctx, edgeTimeout)
	defer cancel()
	for _, answer := range a.workers(ctx, names) {
		list = append(list, report.Edge{Name: answer.Edge, DataPlane: dataPlane(answer, units)})
	}
	return list
}

// dataPlane is the state of one NGINX.
func dataPlane(answer reports.Answer, units []report.Unit) report.DataPlane {
	found := slices.DeleteFunc(answer.Holdings, func(h dataplane.Holding) bool { return len(h.Units) != len(units) })
	switch {
	case answer.Err != nil:
		return report.DataPlane{Problem: answer.Err.Error()}
	case len(found) == 0:
		return report.DataPlane{Problem: "no worker of NGINX has answered"}
	}
	newest := slices.MaxFunc(found, func(a, b dataplane.Holding) int { return cmp.Compare(a.State.Revision, b.State.Revision) })
	d := report.DataPlane{Generation: newest.State.Generation, Loaded: newest.State.Loaded, Draining: newest.State.Draining}
	for i, u := range units {
		stored := newest.Units[i]
		d.Units = append(d.Units, report.Stored{
			Kind: u.Kind, Name: u.Name, Version: stored.Version, Needs: stored.Needs, Current: isCurrent(u, stored.Version),
		})
	}
	workers := map[int]report.Worker{}
	for _, w := range newest.State.Accepting {
		workers[w.PID] = report.Worker{PID: w.PID, Generation: w.Generation, Silent: true}
	}
	for _, h := range found {
		workers[h.State.PID] = worker(h, units)
	}
	for _, w := range workers {
		d.Workers = append(d.Workers, w)
	}
	slices.SortFunc(d.Workers, func(a, b report.Worker) int { return cmp.Compare(a.PID, b.PID) })
	return d
}

// isCurrent reports whether a version of a unit is the newest. A certificate is named by
// the hash of its content, and its version also says whether only one namespace has it.
func isCurrent(u report.Unit, version string) bool {
	if unit.Kind(u.Kind) == unit.Certificate && u.Name != model.DefaultCertificate {
		return version != ""
	}
	return version == u.Version
}

func worker(h dataplane.Holding, units []report.Unit) report.Worker {
	w := report.Worker{PID: h.State.PID, Generation: h.State.Generation}
	for i, u := range units {
		holder := h.Units[i].Worker
		w.Units = append(w.Units, report.Held{
			Kind: u.Kind, Name: u.Name, Version: holder.Holds, Current: isCurrent(u, holder.Holds), Error: holder.Error,
		})
		if unit.Kind(u.Kind) == unit.Backend {
			w.Ejected = append(w.Ejected, ejected(h.State, u.Name)...)
		}
	}
	return w
}

// ejected lists the endpoints of a backend that are ejected in a worker.
func ejected(s dataplane.State, backend string) []report.Ejected {
	var list []report.Ejected
	for _, e := range s.Ejected {
		if e.Backend == backend {
			list = append(list, report.Ejected{
				Backend: e.Backend, Endpoint: e.Endpoint, Reason: e.Reason, Until: time.Unix(e.Until, 0).UTC(), Avoided: e.Avoided,
			})
		}
	}
	return list
}
