package dataplane_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A row is a host with two guards and a bypass, perhaps with a further one, and a request
// to it.
type row struct {
	host         string
	guards       []single
	any          bool
	bypass, also string
	asking
}

func (r row) String() string {
	text := r.host + ": " + r.bypass + " " + r.also
	for _, g := range r.guards {
		text += " " + g.name
	}
	if r.any {
		text += " any"
	}
	return text + ", " + r.asking.String()
}

// moreBypasses are bypasses whose effect is not an outcome.
var moreBypasses = map[string]bypass{
	"affinity": {annotations: []string{"affinity: cookie"}},
	"sticky":   {annotations: []string{"affinity: cookie"}, beside: canary("canary-weight: 100")},
	"mirror":   {annotations: []string{"mirror-target: http://ADDRESS/mirror$request_uri"}},
}

// secondBypasses are bypasses that may stand beside another one.
var secondBypasses = []string{"none", "errors", "cors", "affinity", "mirror", "stream"}

// allBypasses are all bypasses.
func allBypasses() map[string]bypass {
	list := maps.Clone(bypasses)
	maps.Copy(list, moreBypasses)
	return list
}

// forged are requests that claim to come from another client.
var forged = []headgatetest.Request{
	{Path: "/a", Header: http.Header{
		"X-Forwarded-For": {"127.0.0.2"}, "X-Real-Ip": {"127.0.0.2"}, "Forwarded": {"for=127.0.0.2"}, "True-Client-Ip": {"127.0.0.2"},
	}},
	{Path: "/a", Header: http.Header{
		"X-Forwarded-Proto": {"https"}, "Ssl-Client-Verify": {"SUCCESS"}, "Ssl-Client-Subject-Dn": {"CN=client"}, "X-Headgate-Chain": {"127.0.0.2"},
	}},
}

// rowsOf are the rows in which each two of guard, bypass, request, version of HTTP and so on
// meet.
func rowsOf(versions []string) []row {
	firsts := slices.Concat(singles, brokenSingles())
	seconds := append(slices.Clone(singles), single{})
	names := slices.Sorted(maps.Keys(allBypasses()))
	requests := slices.Concat(ways, forged)
	sizes := []int{len(firsts), len(seconds), 2, len(names), len(requests), len(versions), 2, len(secondBypasses)}
	may := func(r []int) bool {
		return (r[0] < 0 || r[1] < 0 || !firsts[r[0]].excludes(seconds[r[1]])) &&
			(r[3] < 0 || r[7] < 0 || !differ(allBypasses()[names[r[3]]].annotations, allBypasses()[secondBypasses[r[7]]].annotations))
	}
	var rows []row
	for i, chosen := range covering(sizes, may) {
		r := row{
			host: fmt.Sprintf("r%d.test", i), guards: []single{firsts[chosen[0]], seconds[chosen[1]]}, any: chosen[2] == 1, bypass: names[chosen[3]], also: secondBypasses[chosen[7]],
			asking: asking{requests[chosen[4]], allBypasses()[names[chosen[3]]].asked, versions[chosen[5]], chosen[6] == 1},
		}
		if r.guards[1].name == "" {
			r.guards = r.guards[:1]
		}
		rows = append(rows, r)
	}
	return rows
}

// annotations are those of a row's guards and of its further bypass.
func (r row) annotations() []string {
	return append(guardAnnotations(r.any, r.guards...), allBypasses()[r.also].annotations...)
}

// openHost is the host of a row's bypasses without a guard.
func (r row) openHost() string { return "open." + r.bypass + "." + r.also + ".test" }

// guardAnnotations are those of a host with guards.
func guardAnnotations(satisfyAny bool, guards ...single) []string {
	var list []string
	global := false
	for _, g := range guards {
		list = append(list, g.annotations...)
		global = global || g.name == "global"
	}
	if !global {
		list = append(list, notGlobal)
	}
	if satisfyAny {
		list = append(list, "satisfy: any")
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// callers are those that may pass both guards of a row, one of them, and none.
func (r row) callers() []caller {
	list := []caller{passing}
	for _, g := range r.guards {
		if g.spoil == nil {
			continue
		}
		for _, c := range slices.Clone(list) {
			if c.again || c.busy || g.limits && c != passing {
				continue
			}
			g.spoil(&c)
			list = append(list, c)
		}
	}
	return list
}

// atDoor reports whether a row's request goes past some of the guards.
func (r row) atDoor() bool { return allBypasses()[r.bypass].leads(r.Path) }

// counting are the guards of a row that its request must pass.
func (r row) counting() []single {
	return slices.DeleteFunc(slices.Clone(r.guards), func(g single) bool {
		if r.atDoor() && (allBypasses()[r.bypass].exempt && g.asks || !allBypasses()[r.bypass].exempt && !g.everywhere) {
			return true
		}
		// A host's own auth service is asked instead of that of all hosts.
		return g.name == "global" && slices.ContainsFunc(r.guards, func(g single) bool {
			return slices.ContainsFunc(g.annotations, func(a string) bool { return strings.HasPrefix(a, "auth-url: ") })
		})
	})
}

// refuses reports whether the guards of a row must keep a caller away, by what each of them
// decides by itself, and which ones do. byLimits: only for what it has sent before.
func (s *site) refuses(t *testing.T, r row, c caller) (refused, byLimits bool, statuses []int) {
	t.Helper()
	granted, denied := false, false
	if r.atDoor() {
		// A guard that is broken closes the path all the same.
		statuses = append(statuses, http.StatusServiceUnavailable)
	}
	for _, g := range r.counting() {
		verdict := s.verdict(t, g, r.asking, c)
		if !verdict.reached() {
			statuses = append(statuses, verdict.status)
		}
		switch {
		case g.checks() && r.any && verdict.status != http.StatusServiceUnavailable:
			granted = granted || verdict.reached() && g.grants
			denied = denied || !verdict.reached()
		case !verdict.reached() && g.limits && g.spoil != nil:
			byLimits = true
		case !verdict.reached():
			refused = true
		}
	}
	refused = refused || denied && !granted
	return refused || byLimits, byLimits && !refused, statuses
}

// verdict is what a guard by itself does with a caller's plain request.
func (s *site) verdict(t *testing.T, g single, a asking, c caller) outcome {
	t.Helper()
	c.again, c.busy = c.again && g.limits, c.busy && g.limits
	a.Request, a.at = headgatetest.Request{Path: "/plain"}, ""
	key := fmt.Sprint(g.name, a.version, a.balanced, c)
	if _, ok := s.verdicts[key]; !ok {
		s.verdicts[key] = s.must(t, "alone."+g.name+".test", a, c)
	}
	return s.verdicts[key]
}

// open is what becomes of a row's request without a guard.
func (s *site) open(t *testing.T, r row) outcome {
	t.Helper()
	key := fmt.Sprint(r.openHost(), r.asking)
	if _, ok := s.opens[key]; !ok {
		s.opens[key] = s.must(t, r.openHost(), r.asking, passing)
	}
	return s.opens[key]
}

// check has all callers of a row ask.
func (s *site) check(t *testing.T, r row, sound bool) {
	t.Helper()
	open := s.open(t, r)
	for _, c := range r.callers() {
		refused, byLimits, statuses := s.refuses(t, r, c)
		if refused && !byLimits {
			c.again, c.busy = false, false
		}
		got, err := s.ask(t, r.host, r.asking, c)
		s.combinations++
		switch {
		case err != nil && s.reloading:
			s.lost++
		case err != nil:
			t.Fatalf("%v: %+v: %v", r, c, err)
		case refused && got.reached():
			t.Errorf("%v: %+v reaches %s, and its guards alone answer %v", r, c, got, statuses)
		case refused && got != open && got.status != http.StatusBadRequest && !slices.Contains(statuses, got.status):
			t.Errorf("%v: %+v: %s, and its guards alone answer %v", r, c, got, statuses)
		case got.status == http.StatusInternalServerError && slices.ContainsFunc(r.guards, func(g single) bool { return g.name == "digest" }) && slices.Contains(statuses, got.status):
			// Where an auth service that is down decides too, Digest does not ask for the password.
		case !refused && sound && !r.atDoor() && got != open:
			t.Errorf("%v: %+v: %s, and without its guards: %s", r, c, got, open)
		}
	}
}
