package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/unit"
)

// TestDrainOCSPChanges: OCSP responses are asked for once for each certificate that is
// shown, as long as stapling is on.
func TestDrainOCSPChanges(t *testing.T) {
	d := plan.NewDesired(nil)
	step := func(about, want string) {
		t.Helper()
		certificates, removed := d.DrainOCSPChanges()
		var added []string
		for _, c := range certificates {
			added = append(added, c.Hash)
		}
		slices.Sort(added)
		slices.Sort(removed)
		if got := fmt.Sprint(added, removed); got != want {
			t.Errorf("%s: got %s, want %s", about, got, want)
		}
	}
	name := func(name, hash string) {
		n := model.Name{Name: name, Host: name, Certificate: hash}
		if hash == "" {
			d.Set(unit.Of(n))
			return
		}
		d.Set(unit.Of(n, model.Certificate{Hash: hash}))
	}
	stapling := func(on bool) { d.Set(unit.Of(model.Globals{Process: model.Process{Stapling: on}})) }
	name("a", "1")
	d.Set(unit.Of(model.Certificate{Hash: "main"}))
	step("while it is off", "[] []")
	stapling(true)
	step("switched on", "[1 main] []")
	name("b", "1")
	name("c", "2")
	step("two more names", "[2] []")
	name("a", "1")
	stapling(true)
	step("nothing new", "[] []")
	name("a", "main")
	name("b", "")
	step("no name shows 1 any more", "[] [1]")
	d.Set(unit.Of(model.Certificate{Hash: "other"}))
	step("a name shows what was the default one", "[other] []")
	d.Set(unit.Built{Key: unit.Name.Key("a")})
	step("now no name does", "[] [main]")
	d.Set(unit.Of(model.NamePatterns{LeadingWildcards: []model.Name{{Name: "*.x", Host: "c", Certificate: "3"}}}, model.Certificate{Hash: "3"}))
	step("a pattern", "[3] []")
	d.Set(unit.Built{Key: unit.PatternsKey})
	name("d", "4")
	d.Set(unit.Built{Key: unit.Name.Key("d")})
	step("gone, and what came and went between", "[] [3]")
	stapling(false)
	step("switched off", "[] [2 other]")
	stapling(true)
	stapling(false)
	step("on and off", "[] []")
}
