package explain

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

func TestAuthCheck(t *testing.T) {
	t.Parallel()
	const pass, asks, login, forbids, neutral = "pass", "asks", "login", "forbids", "neutral"
	says := map[string]prediction.Answer{
		pass: {}, asks: {Why: "it asks"}, login: {Status: 401, Why: "no password"}, forbids: {Status: 403, Why: "no address"}, neutral: {Neutral: true},
	}
	x := &explainer{}
	for name, said := range says {
		check := func(prediction.Request) prediction.Answer { return said }
		x.Features = append(x.Features, feature.Feature{Name: name, Predict: prediction.ByPhase{prediction.AuthPhase: check}})
	}
	x.Features = append(x.Features, feature.Feature{Name: "none"})
	x.router = router.New(router.Settings{Lookup: func(unit.Key) (unit.Unit, bool) { return unit.Unit{}, false }})
	for _, c := range []struct {
		checks   string
		all, any int
		// why is the reason if one check is enough.
		why string
	}{
		{"none", 0, 0, ""},
		{"pass", 0, 0, ""},
		{"login", 401, 401, "no password"},
		{"asks", 0, 0, "it asks"},
		{"pass forbids", 403, 0, ""},
		{"forbids none pass", 403, 0, ""},
		{"asks pass", 0, 0, ""},
		{"neutral", 0, 0, ""},
		{"neutral login", 401, 401, "no password"},
		{"neutral forbids login", 403, 401, "no auth check allows the request: no address; no password"},
		{"neutral asks", 0, 0, "it asks"},
		{"login asks", 401, 0, "one auth check that allows the request is enough: no password; it asks"},
		{"asks forbids", 403, 0, "one auth check that allows the request is enough: it asks; no address"},
		{"forbids login", 403, 401, "no auth check allows the request: no address; no password"},
		{"login forbids", 401, 401, "no auth check allows the request: no password; no address"},
	} {
		won := &model.Route{}
		for check := range strings.FieldsSeq(c.checks) {
			won.Policies = append(won.Policies, model.Policy{Feature: check})
		}
		if got, _ := x.authCheck(won, "http"); got.Status != c.all {
			t.Errorf("%s: all must, status %d, want %d", c.checks, got.Status, c.all)
		}
		won.SatisfyAny = true
		got, depends := x.authCheck(won, "http")
		if why := got.Why + strings.Join(depends, "; "); got.Status != c.any || why != c.why {
			t.Errorf("%s: one is enough, status %d, why %q, want %d, %q", c.checks, got.Status, why, c.any, c.why)
		}
	}
}
