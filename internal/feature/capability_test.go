package feature_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// firewall needs what not every NGINX has, and must not let requests through
// without it.
func firewall() feature.Feature {
	on := feature.Setting[bool]{Annotation: "firewall", Key: "firewall", Parse: feature.Bool}
	comfort := feature.Setting[bool]{Annotation: "comfort", Parse: feature.Bool}
	everywhere := feature.Setting[bool]{Key: "everywhere", Parse: feature.Bool}
	return feature.Feature{
		Name: "firewall", Settings: []feature.AnySetting{on, comfort, everywhere},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if on.Get(v) && !v.Has(feature.HybridGroups) {
				out.Deny(on, finding.MissingCapability, "no firewall")
			}
			if comfort.Get(v) && !v.Has(feature.HybridGroups) {
				out.Reject(comfort, finding.MissingCapability, "no comfort")
			}
			if everywhere.Get(v) && !v.Has(feature.HybridGroups) {
				out.Reject(everywhere, finding.MissingCapability, "nowhere")
			}
		},
	}
}

func TestHas(t *testing.T) {
	f := firewall()
	for _, c := range []struct {
		annotation, key string
		lacking         []feature.Capability
		denied          bool
		problem         feature.Problem
	}{
		{"p/firewall", "", nil, false, feature.Problem{}},
		{"p/nothing", "", []feature.Capability{feature.HybridGroups}, false, feature.Problem{}},
		{"p/firewall", "", []feature.Capability{feature.HybridGroups}, true,
			feature.Problem{Field: "p/firewall", Code: finding.MissingCapability, Message: "no firewall", Effect: "503", Rejected: true, Denies: true}},
		{"", "firewall", []feature.Capability{feature.HybridGroups}, true,
			feature.Problem{Field: "p/firewall", Code: finding.MissingCapability, Message: "no firewall", Effect: "503", Rejected: true, Denies: true}},
		{"p/comfort", "", []feature.Capability{feature.HybridGroups}, false,
			feature.Problem{Field: "p/comfort", Code: finding.MissingCapability, Message: "no comfort", Effect: "using the default", Rejected: true}},
		{"", "everywhere", []feature.Capability{feature.HybridGroups}, false,
			feature.Problem{Field: "everywhere", Code: finding.MissingCapability, Message: "nowhere", Effect: "using the default", Rejected: true}},
	} {
		keys := map[string]string{}
		if c.key != "" {
			keys[c.key] = "true"
		}
		schema := feature.NewSchema("p", []feature.Feature{f}, c.lacking...)
		config, _ := schema.Config(keys)
		values := schema.Parse(model.Origin{}, map[string]string{c.annotation: "true"}, config).Values()
		out := feature.RouteOut{Report: feature.NewReport(values, "503"), Route: &model.Route{}}
		f.Route(values, &out)
		reported := len(out.Problems) == 1 && out.Problems[0] == c.problem || len(out.Problems) == 0 && c.problem == feature.Problem{}
		if out.Denied != c.denied || !reported {
			t.Errorf("%+v: denied %v, problems %+v", c, out.Denied, out.Problems)
		}
	}
}
