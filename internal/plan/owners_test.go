package plan_test

import (
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/unit"
)

// What one namespace has is its own. What several have has no owner: none of them can use
// up the time for it.
func TestOwners(t *testing.T) {
	t.Parallel()
	d := plan.NewDesired(nil)
	set := func(namespace string) {
		name := namespace + ".test"
		content := model.Content{Name: "users", Bytes: model.Confidential("x")}
		d.Set(unit.Of(model.Host{Name: name, Namespace: namespace, Contents: []model.Content{content}}))
		d.Set(unit.Of(model.Name{Name: name, Host: name, Namespace: namespace, Certificate: "c"}, model.Certificate{Hash: "c", Secret: namespace + "/tls"}))
	}
	want := func(about string, owners map[unit.Key]string) {
		t.Helper()
		changes, _ := d.Delta(plan.Static{Generation: 1})
		d.Applied(changes)
		for _, c := range changes {
			if owner, ok := owners[c.Key()]; ok && owner != c.Owner {
				t.Errorf("%s: %s is owned by %q, want %q", about, c.Key(), c.Owner, owner)
			}
			delete(owners, c.Key())
		}
		for key := range owners {
			t.Errorf("%s: %s is not pushed", about, key)
		}
	}
	certificate, users := unit.Certificate.Key("c"), unit.Content.Key("users")
	set("one")
	want("one namespace", map[unit.Key]string{certificate: "one", users: "one", unit.Host.Key("one.test"): "one", unit.Name.Key("one.test"): "one"})
	set("two")
	want("two namespaces", map[unit.Key]string{certificate: "", users: "", unit.Host.Key("two.test"): "two"})
	d.Set(unit.Of(model.Backend{Key: "three/web/80"}))
	d.Set(unit.Of(model.Backend{Key: "/auth.example/443"}))
	want("backends", map[unit.Key]string{unit.Backend.Key("three/web/80"): "three", unit.Backend.Key("/auth.example/443"): ""})
}
