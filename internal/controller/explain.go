package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/explain"
)

// Explain says what would become of a request, and what NGINX's workers hold of
// the units that it needs. The answer is from what was taken and built by now.
// An *explain.QuestionError says what is wrong with the question. Any other
// error is for a controller that has no time: it is tried again later.
func (c *Controller) Explain(ctx context.Context, q explain.Question) (explain.Explanation, error) {
	type result struct {
		explanation explain.Explanation
		err         error
	}
	answer := make(chan result, 1)
	ask := func() {
		e, err := explain.Explain(q, explain.Settings{
			Store: c.store, Builder: c.builder, Features: c.settings.Features, BoundProfiles: c.desired.BoundProfiles,
			Findings: c.settings.Ledger.All(), Files: c.settings.Files, HealthPath: c.settings.Environment.HealthPath.String(),
			HTTPSPort: uint16(c.settings.Environment.HTTPSPort), Now: time.Now(),
		})
		answer <- result{e, err}
	}
	select {
	case c.questions <- ask:
	case <-ctx.Done():
		return explain.Explanation{}, fmt.Errorf("wait for the controller: %w", ctx.Err())
	}
	r := <-answer
	if r.err != nil {
		return explain.Explanation{}, r.err
	}
	if len(r.explanation.Units) > 0 {
		r.explanation.DataPlane = c.holdings(ctx, r.explanation.Units)
	}
	return r.explanation, nil
}

// holdings asks NGINX's workers what they hold.
func (c *Controller) holdings(ctx context.Context, units []explain.Unit) *explain.DataPlane {
	names := make([]dataplane.UnitName, len(units))
	for i, u := range units {
		names[i] = dataplane.UnitName{Kind: u.Kind, Name: u.Name}
	}
	found, err := dataplane.Holdings(ctx, c.settings.RunDir.Socket(), names)
	if err != nil {
		return &explain.DataPlane{Problem: err.Error()}
	}
	newest := slices.MaxFunc(found, func(a, b dataplane.Holding) int { return cmp.Compare(a.State.Revision, b.State.Revision) })
	d := &explain.DataPlane{Generation: newest.State.Generation, Loaded: newest.State.Loaded, Draining: newest.State.Draining}
	for i, u := range units {
		stored := newest.Units[i]
		d.Units = append(d.Units, explain.Stored{
			Kind: u.Kind, Name: u.Name, Version: stored.Version, Needs: stored.Needs, Current: stored.Version == u.Version,
		})
	}
	workers := map[int]explain.Worker{}
	for _, w := range newest.State.Accepting {
		workers[w.PID] = explain.Worker{PID: w.PID, Generation: w.Generation, Silent: true}
	}
	for _, h := range found {
		workers[h.State.PID] = worker(h, units)
	}
	for _, w := range workers {
		d.Workers = append(d.Workers, w)
	}
	slices.SortFunc(d.Workers, func(a, b explain.Worker) int { return cmp.Compare(a.PID, b.PID) })
	return d
}

func worker(h dataplane.Holding, units []explain.Unit) explain.Worker {
	w := explain.Worker{PID: h.State.PID, Generation: h.State.Generation}
	for i, u := range units {
		holder := h.Units[i].Worker
		w.Units = append(w.Units, explain.Held{
			Kind: u.Kind, Name: u.Name, Version: holder.Holds, Current: holder.Holds == u.Version, Error: holder.Error,
		})
	}
	return w
}
