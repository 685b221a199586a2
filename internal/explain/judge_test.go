package explain

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const pass, asks, login, forbids = "pass", "asks", "login", "forbids"
	says := map[string]feature.Foretold{
		pass: {}, asks: {Why: "it asks"}, login: {Status: 401, Why: "no password"}, forbids: {Status: 403, Why: "no address"},
	}
	x := &explainer{}
	for name, said := range says {
		x.Features = append(x.Features, feature.Feature{Name: name, ForetellJudge: func(feature.Question) feature.Foretold { return said }})
	}
	x.Features = append(x.Features, feature.Feature{Name: "none"})
	x.router = router.New(router.Settings{Lookup: func(unit.Key) (unit.Unit, bool) { return unit.Unit{}, false }})
	for _, c := range []struct {
		judges   string
		all, any int
		// told is what is told of a request that any judge may let in.
		told string
	}{
		{"none", 0, 0, ""},
		{"pass", 0, 0, ""},
		{"login", 401, 401, "no password"},
		{"asks", 0, 0, "it asks"},
		{"pass forbids", 403, 0, ""},
		{"forbids none pass", 403, 0, ""},
		{"asks pass", 0, 0, ""},
		{"login asks", 401, 0, "one who lets the request pass is enough: no password; it asks"},
		{"asks forbids", 403, 0, "one who lets the request pass is enough: it asks; no address"},
		{"forbids login", 403, 401, "nobody lets the request pass: no address; no password"},
		{"login forbids", 401, 401, "nobody lets the request pass: no password; no address"},
	} {
		won := &model.Route{}
		for judge := range strings.FieldsSeq(c.judges) {
			won.Policies = append(won.Policies, model.Policy{Feature: judge})
		}
		if got, _ := x.judge(won, "http"); got.Status != c.all {
			t.Errorf("%s: all must, status %d, want %d", c.judges, got.Status, c.all)
		}
		won.AnyJudge = true
		got, depends := x.judge(won, "http")
		if told := got.Why + strings.Join(depends, "; "); got.Status != c.any || told != c.told {
			t.Errorf("%s: one is enough, status %d, told %q, want %d, %q", c.judges, got.Status, told, c.any, c.told)
		}
	}
}
