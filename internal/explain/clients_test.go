package explain_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
)

// TestMisdirected: a host that verifies clients takes no requests over
// connections of other hosts.
func TestMisdirected(t *testing.T) {
	verifying := feature.Setting[bool]{Annotation: "verifying", Parse: feature.Bool, OnInvalid: feature.Deny, Scope: feature.ScopeHost}
	s := settings("a.test", "/", "verifying", "true")
	s.Features = append(all.Features(), feature.Feature{
		Name: "verifying", Settings: []feature.Declared{verifying},
		Host: func(v feature.Values, out *feature.HostOut) {
			if verifying.Get(v) {
				out.TLS.Clients = &model.Clients{Depth: 1}
			}
		},
	})
	s.Builder = build.New(s.Features, prefix)
	for asked, want := range map[string]int{
		"https://a.test/ a.test": 503, "https://b.test/ a.test": 421, "https://10.0.0.1/ a.test": 421, "https://a.test/ b.test": 404,
		"http://b.test/ a.test": 308,
	} {
		url, host, _ := strings.Cut(asked, " ")
		e, err := explain.Explain(explain.Question{URL: url, Headers: []string{"Host: " + host}}, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Answers[0].Status; got != want {
			t.Errorf("%s: %d, want %d: %s", asked, got, want, e.Answers[0].Why)
		}
	}
}
