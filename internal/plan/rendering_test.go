package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/unit"
)

// sizeOf is the one directive.
var sizeOf = directive.Directive{Name: "size", Kind: directive.Size}

func numbered(n int) model.Profile {
	return model.Profile{}.With(sizeOf.To(int64(n + 1)))
}

// asking asks for a host with so many profiles, and returns the configuration
// for that.
func asking(tb testing.TB, profiles int) (*Desired, Static) {
	tb.Helper()
	d := NewDesired(nil)
	d.Set(unit.Of(model.Globals{Default: numbered(0), Process: model.Process{ShutdownTimeout: time.Minute}}))
	h := model.Host{Name: "a.test"}
	for n := range profiles {
		h.Routes = append(h.Routes, model.Route{Path: "/", Profile: numbered(n)})
	}
	d.Set(unit.Of(h))
	static, _, err := d.Next(nginxconf.Environment{Directives: directive.List{sizeOf}}, Static{Dictionaries: nginxconf.FirstDictionaries(0, 0)}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return d, static
}

func same(tb testing.TB, d *Desired, current Static) Static {
	tb.Helper()
	next, reason, err := d.Next(nginxconf.Environment{Directives: directive.List{sizeOf}}, current, nil)
	if err != nil || reason != "" {
		tb.Fatal(reason, err)
	}
	return next
}

// TestNothingChangedRendersNothing: most changes are of endpoints, and must not
// pay for each profile that there is.
func TestNothingChangedRendersNothing(t *testing.T) {
	allocations := func(profiles int) float64 {
		d, static := asking(t, profiles)
		return testing.AllocsPerRun(10, func() { same(t, d, static) })
	}
	if few, many := allocations(1), allocations(200); many > few || many > 100 {
		t.Errorf("%v allocations with 200 profiles, %v with one", many, few)
	}

	// What stands in no file is rendered once.
	d, static := asking(t, 200)
	globals := d.globals
	globals.Process.Stapling = true
	d.Set(unit.Of(globals))
	static = same(t, d, static)
	if n := testing.AllocsPerRun(10, func() { same(t, d, static) }); n > 100 {
		t.Errorf("%v allocations after a setting changed that stands in no file", n)
	}

	// A reload that waits for its time is planned again with each change.
	d.Set(unit.Of(model.Host{Name: "b.test", Routes: []model.Route{{Path: "/", Profile: numbered(1000)}}}))
	plan := func() {
		if _, reason, err := d.Next(nginxconf.Environment{Directives: directive.List{sizeOf}}, static, nil); reason == "" || err != nil {
			t.Fatal(reason, err)
		}
	}
	plan()
	files := d.rendered[1].files
	plan()
	if again := d.rendered[1].files; &files[nginxconf.File][0] != &again[nginxconf.File][0] {
		t.Error("a reload that waits is rendered again")
	}
}

// TestEveryStaticFileCounts, and not nginx.conf alone.
func TestEveryStaticFileCounts(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"another content": {"other.conf": []byte("x")},
		"another file":    {"more.conf": nil},
	} {
		d, static := asking(t, 1)
		static.from = input{}
		static.Files = maps.Clone(static.Files)
		maps.Copy(static.Files, files)
		next, reason, err := d.Next(nginxconf.Environment{Directives: directive.List{sizeOf}}, static, nil)
		if err != nil || reason == "" || next.Generation != static.Generation+1 || SameFiles(next.Files, static.Files) {
			t.Errorf("%s: generation %d because %q, %v", name, next.Generation, reason, err)
		}
	}
	a, b := map[string][]byte{"a": []byte("x"), "b": []byte("y")}, map[string][]byte{"a": []byte("x"), "b": []byte("z")}
	if SameFiles(a, b) || !SameFiles(a, maps.Clone(a)) || SameFiles(a, map[string][]byte{"a": []byte("x")}) {
		t.Error("SameFiles compares something else")
	}
}

// TestRememberingChangesNothing: for all profiles in any order, the next
// configuration is what it would be if all of it were rendered each time.
func TestRememberingChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	reasons := map[string]int{}
	for range 5 {
		d, static := asking(t, 2)
		for range 150 {
			name := fmt.Sprint("h", random.IntN(3))
			host := model.Host{Name: name, Routes: []model.Route{{Path: "/", Profile: numbered(random.IntN(4))}}}
			if random.IntN(5) == 0 {
				host.TLS = []model.Policy{{Feature: "handshake"}}
			}
			switch globals := d.globals; random.IntN(6) {
			case 0:
				globals.Process.Workers = random.IntN(2)
				globals.Process.Stapling = random.IntN(2) == 0
				globals.Process.TLS.RejectUnknown = random.IntN(4) == 0
				globals.Default = numbered(random.IntN(2))
				d.Set(unit.Of(globals))
			case 1:
				d.Set(unit.Built{Key: unit.Host.Key(name)})
			default:
				d.Set(unit.Of(host))
			}
			var grown *nginxconf.Dictionaries
			if random.IntN(20) == 0 {
				grown = static.Dictionaries.Grown(nginxconf.Usage{}, true)
			}
			forgetful, without := *d, static
			forgetful.rendered, without.from = nil, input{}
			want, wantReason, err := forgetful.Next(nginxconf.Environment{Directives: directive.List{sizeOf}}, without, grown)
			if err != nil {
				t.Fatal(err)
			}
			next, reason, err := d.Next(nginxconf.Environment{Directives: directive.List{sizeOf}}, static, grown)
			if err != nil || reason != wantReason || next.Generation != want.Generation || !SameFiles(next.Files, want.Files) {
				t.Fatalf("generation %d because %q, want %d because %q; %v", next.Generation, reason, want.Generation, wantReason, err)
			}
			reasons[reason]++
			// Some reloads wait, or fail.
			if reason == "" || random.IntN(2) == 0 {
				static = next
			}
			changes, _ := d.Delta(static)
			d.Applied(changes)
		}
	}
	if len(reasons) < 6 {
		t.Errorf("too few of the reasons were tried: %v", reasons)
	}
}

func benchmarkNext(b *testing.B, profiles int) {
	d, static := asking(b, profiles)
	b.ReportAllocs()
	for b.Loop() {
		same(b, d, static)
	}
}

func BenchmarkNext1(b *testing.B)   { benchmarkNext(b, 1) }
func BenchmarkNext200(b *testing.B) { benchmarkNext(b, 200) }
