package explain

import (
	"testing"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

// TestMayAnswer: predictions are in the order of the phases, as far as a request
// gets there.
func TestMayAnswer(t *testing.T) {
	t.Parallel()
	says := func(name string, phase prediction.Phase) feature.Feature {
		return feature.Feature{Name: name, Predict: prediction.ByPhase{phase: prediction.MayAnswer(name + " may answer")}}
	}
	refuses := func(prediction.Request) prediction.Answer {
		return prediction.Answer{Status: 401, Why: "no password"}
	}
	x := &explainer{}
	x.Features = []feature.Feature{
		says("guard", prediction.GuardPhase), says("auth", prediction.AuthPhase), says("limit", prediction.LimitPhase), says("route", prediction.RoutePhase),
		{Name: "login", Predict: prediction.ByPhase{prediction.AuthPhase: refuses}},
		{Name: "early", Predict: prediction.ByPhase{prediction.RoutePhase: refuses}},
		{Name: "late", Predict: prediction.ByPhase{prediction.GuardPhase: refuses}},
	}
	x.router = router.New(router.Settings{Lookup: func(unit.Key) (unit.Unit, bool) { return unit.Unit{}, false }})
	for _, c := range []struct {
		backend  string
		policies []string
		status   int
		why      string
	}{
		{"b", nil, 0, "it is the route's backend"},
		{"b", []string{"guard", "auth", "limit", "route"}, 0, "it is the route's backend; route may answer; limit may answer; auth may answer; guard may answer"},
		{"b", []string{"guard", "login", "limit", "route"}, 401, "no password; route may answer; limit may answer"},
		{"b", []string{"guard", "auth", "late"}, 401, "no password; auth may answer"},
		{"b", []string{"auth", "early"}, 401, "no password"},
		{"", []string{"guard", "route"}, 404, "the built-in default backend answers; route may answer; guard may answer"},
		{"asleep", []string{"guard", "route"}, 503, "backend asleep has no endpoint in use; route may answer"},
	} {
		x.out.Backends = nil
		if c.backend == "b" {
			x.out.Backends = []report.Backend{{Key: "b", Role: report.OwnBackend, Used: []string{"10.0.0.1:80"}}}
		}
		won := &model.Route{Backend: c.backend}
		for _, name := range c.policies {
			won.Policies = append(won.Policies, model.Policy{Feature: name})
		}
		if got := x.answerOnRoute(won, "http"); got.Status != c.status || got.Why != c.why {
			t.Errorf("%v: %d %q, want %d %q", c.policies, got.Status, got.Why, c.status, c.why)
		}
	}
}
