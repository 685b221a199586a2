package all_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// TestCallsHaveNames: one that a request's other call had, of this feature or
// another one, would take its place.
func TestCallsHaveNames(t *testing.T) {
	cases := featuretest.Cases(t, "..", all.Features())
	schema := feature.NewSchema(prefix, all.Features())
	config, _ := schema.Config(nil)
	of := map[model.CallName]string{}
	for _, f := range all.Features() {
		if f.Calls == nil {
			continue
		}
		named := map[model.CallName]bool{}
		for _, c := range cases {
			annotations := map[string]string{}
			for name, value := range c.Annotations {
				annotations[prefix+"/"+name] = value
			}
			one := map[model.CallName]bool{}
			for _, call := range f.Calls(schema.Parse(model.Origin{Namespace: "default", Ingress: "web"}, annotations, config).Values()) {
				if call.Name == "" || one[call.Name] {
					t.Errorf("%s: %v: the call %+v has no name, or that of another one", f.Name, c.Annotations, call)
				}
				one[call.Name], named[call.Name] = true, true
			}
		}
		if len(named) == 0 {
			t.Errorf("no golden case of %s has a call", f.Name)
		}
		for name := range named {
			if of[name] != "" {
				t.Errorf("%s and %s have calls named %s", of[name], f.Name, name)
			}
			of[name] = f.Name
		}
	}
}
