package router_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

// TestAsLua compares Go and Lua for generated units.
func TestAsLua(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	seen := map[string]int{}
	for seed := range uint64(80) {
		for _, answer := range compare(t, b, newWorld(seed, b.alike, [3]string{})) {
			seen[kindOf(answer)]++
		}
		if t.Failed() {
			return
		}
	}
	t.Log(seen)
	// A test with unknown names only would prove nothing.
	for _, want := range []string{"route", "301", "404", "503", "200", "exec"} {
		if seen[want] < 20 {
			t.Errorf("%d answers are %q", seen[want], want)
		}
	}
	if b.alike && seen["500"] < 5 {
		t.Errorf("%d patterns gave up", seen["500"])
	}
}

// TestNamesAreRemembered sends Lua more names than it remembers, and the first ones
// again: they need no search any more, and have the same result.
func TestNamesAreRemembered(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	w := &clusterFixture{units: append(shop(), unit.FromGlobals(model.Globals{}))}
	var questions []question
	for i := range 12_000 {
		questions = append(questions, question{fmt.Sprintf("v%d", i), "/"}, question{fmt.Sprintf("x%d.%s", i%3, strings.Repeat("n", i%300)), "/"})
	}
	// The expression before the last ones reaches its limit on these.
	exploding := strings.Repeat("a", 60)
	questions = append(questions, question{exploding + "b", "/"}, question{exploding + "c", "/login"}, question{"10.0.0.17", "/healthz"})
	questions = append(questions, questions[:50]...)
	here := newRouter(w.units)
	for i, answer := range b.decide(t, w.units, questions) {
		if got := ask(here, questions[i]); got != answer {
			t.Fatalf("%d: host %q: Go %s, Lua %s", i, questions[i].host, got, answer)
		}
	}
}

// kindOf is the status, or what else comes first.
func kindOf(answer string) string {
	first, _, _ := strings.Cut(answer, " ")
	return first
}

// FuzzAsLua does the same with any seed, and adds a pattern, a name and a path to
// the clusterFixture.
func FuzzAsLua(f *testing.F) {
	f.Add(uint64(1), "(a|b)*c$", "www.a.b", "/a/b")
	f.Add(uint64(2), `(?<x>.)\k<x>`, "a..b.", "/a//b")
	f.Add(uint64(3), "(?=.*[a-z]*x$)a*", "*.a", "/\xff\x00")
	f.Add(uint64(4), `^/v\d+/[^/]+/?$|x`, "v1.test", "/V12/ab/")
	b := newFixture(f)
	f.Fuzz(func(t *testing.T, seed uint64, pattern, host, path string) {
		compare(t, b, newWorld(seed, b.alike, [3]string{pattern, host, path}))
	})
}

// compare fails the test, with the smallest clusterFixture that shows it, if Go and Lua
// differ. It returns Lua's answers.
func compare(t *testing.T, b *fixture, w *clusterFixture) []string {
	t.Helper()
	questions := w.questions()
	answers := b.decide(t, w.units, questions)
	here := newRouter(w.units)
	for i, q := range questions {
		if got := ask(here, q); got != answers[i] {
			units := shrink(w.units, func(units []unit.Unit) bool {
				return ask(newRouter(units), q) != b.decide(t, units, []question{q})[0]
			})
			t.Errorf("host %q, path %q\n  Go:  %s\n  Lua: %s\nwith the units\n%s",
				q.host, q.path, ask(newRouter(units), q), b.decide(t, units, []question{q})[0], show(units))
			break
		}
	}
	return answers
}

func newRouter(units []unit.Unit) *router.Router {
	all := make(map[unit.Key]unit.Unit, len(units))
	for _, u := range units {
		all[u.Key] = u
	}
	return router.New(router.Settings{
		Lookup:     func(key unit.Key) (unit.Unit, bool) { u, ok := all[key]; return u, ok },
		HealthPath: "/healthz",
	})
}

// ask returns Go's decision in the form of decide.lua.
func ask(r *router.Router, q question) string {
	d := r.Route(q.host, q.path)
	var outcome string
	switch {
	case d.Status != 0:
		outcome = fmt.Sprint(d.Status)
	case d.Page == router.HealthPage:
		outcome = "200"
	case d.Page == router.StatusPage:
		outcome = "exec @nginx_status"
	default:
		outcome = fmt.Sprintf("route @%s %s %s %t %t", d.Route.Location, d.Route.Backend, d.Route.Fallback, d.Route.Default, d.Route.Denied)
	}
	name := ""
	if d.Name.By != "" {
		name = d.Name.Name.Name + " of " + d.Name.Host
	}
	secured, _ := r.Certificate(q.host)
	return outcome + " | " + name + " | " + secured.Name.Name + complaint(d, q)
}

// complaint returns what is wrong with the reasons of a decision.
func complaint(d router.Decision, q question) string {
	name := d.Name.Name.Name
	right := map[router.By]bool{
		"":                        d.Err != nil,
		router.ByName:             name == q.host,
		router.ByWildcard:         strings.HasPrefix(name, "*.") && strings.HasSuffix(q.host, name[1:]),
		router.ByLeadingWildcard:  strings.HasPrefix(name, "*") && strings.HasSuffix(q.host, strings.TrimPrefix(name, "*")),
		router.ByTrailingWildcard: strings.HasSuffix(name, "*") && strings.HasPrefix(q.host, strings.TrimSuffix(name, "*")),
		router.ByRegex:            strings.HasPrefix(name, "~"),
		router.ByDefault:          name == model.DefaultHost,
	}
	switch {
	case !right[d.Name.By]:
		return fmt.Sprintf(" | %s is not found by %q", name, d.Name.By)
	case (d.Err != nil) != (d.Status >= 500 || d.Status == 414):
		return fmt.Sprintf(" | %d with the error %v", d.Status, d.Err)
	case d.Status == 301 && (d.Route == nil || writtenAs(d.Route) != q.path+"/"):
		return " | redirected by another route"
	case d.Status != 301 && d.Route != nil && d.Route.Kind == model.Exact && d.Route.Path != q.path:
		return " | another path"
	}
	return ""
}

// writtenAs is a route's path with the slash that it was written with.
func writtenAs(r *router.Route) string {
	if r.Slash {
		return r.Path + "/"
	}
	return r.Path
}
