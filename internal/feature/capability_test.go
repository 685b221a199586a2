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
		Name: "firewall", Settings: []feature.Declared{on, comfort, everywhere},
		Route: func(r *feature.Reader, _ *model.Route) {
			if on.Get(r) && !r.Has(feature.HybridGroups) {
				r.Deny(on, finding.MissingCapability, "no firewall")
			}
			if comfort.Get(r) && !r.Has(feature.HybridGroups) {
				r.Refuse(comfort, finding.MissingCapability, "no comfort")
			}
			if everywhere.Get(r) && !r.Has(feature.HybridGroups) {
				r.Refuse(everywhere, finding.MissingCapability, "nowhere")
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
			feature.Problem{Field: "p/firewall", Code: finding.MissingCapability, Message: "no firewall", Effect: "the paths of this Ingress answer 503"}},
		{"", "firewall", []feature.Capability{feature.HybridGroups}, true,
			feature.Problem{Field: "p/firewall", Code: finding.MissingCapability, Message: "no firewall", Effect: "the paths of this Ingress answer 503"}},
		{"p/comfort", "", []feature.Capability{feature.HybridGroups}, false,
			feature.Problem{Field: "p/comfort", Code: finding.MissingCapability, Message: "no comfort", Effect: "the default is used"}},
		{"", "everywhere", []feature.Capability{feature.HybridGroups}, false,
			feature.Problem{Field: "everywhere", Code: finding.MissingCapability, Message: "nowhere", Effect: "the default is used"}},
	} {
		keys := map[string]string{}
		if c.key != "" {
			keys[c.key] = "true"
		}
		config, _ := feature.NewConfig([]feature.Feature{f}, keys)
		r := feature.NewReader("p", map[string]string{c.annotation: "true"}, config.Lacking(c.lacking...))
		f.Route(r, &model.Route{})
		told := len(r.Problems()) == 1 && r.Problems()[0] == c.problem || len(r.Problems()) == 0 && c.problem == feature.Problem{}
		if r.Denied() != c.denied || !told {
			t.Errorf("%+v: denied %v, problems %+v", c, r.Denied(), r.Problems())
		}
	}
}
