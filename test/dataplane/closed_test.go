package dataplane_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A state is what breaks guards while they are served.
type state struct {
	name string
	// breaks are guards that no client may pass then.
	breaks []string
	// each: of so many rows one asks. Where no client gets in anywhere, few are enough.
	each       int
	begin, end func(s *site)
}

// bad is the state with a bad value of a key.
func bad(value, breaks string, each int) state {
	return state{
		name: value, breaks: []string{breaks}, each: each,
		begin: func(s *site) { s.instance.Apply(s.config(value)) },
		end:   func(s *site) { s.instance.Apply(s.config()) },
	}
}

var states = []state{
	{
		name: "Secrets are gone", breaks: []string{"basic", "digest", "certificate", "subject"}, each: 1,
		begin: func(s *site) { s.instance.Delete(s.secrets) },
		end:   func(s *site) { s.instance.Apply(s.secrets) },
	},
	{
		name: "services are down", breaks: []string{"url", "global"}, each: 1,
		begin: func(s *site) { s.down.Store(true) },
		end:   func(s *site) { s.down.Store(false) },
	},
	bad("global-auth-url: http://ADDRESS/{x}", "global", 1),
	bad("block-cidrs: 127.0.0.5,nonsense", "cidr", 5),
	bad("block-user-agents: ~(", "agent", 5),
	bad("block-referers: ~(", "referer", 5),
	{
		// A third, since it takes as long as all others together; all at night.
		name: "NGINX is reloaded", each: 3,
		begin: func(s *site) { s.reloading = true },
		end: func(s *site) {
			s.instance.WaitSynced()
			s.reloading = false
		},
	},
}

// TestFailsClosed sends requests to hosts with two guards and a bypass. What a guard by itself
// would refuse reaches no backend and no mirror. What all let pass ends as without them,
// unless something is broken.
func TestFailsClosed(t *testing.T) {
	t.Parallel()
	s := startSite(t, headgatetest.Options{Timing: headgatetest.Hasty()})
	s.checkSingles(t)
	s.checkEffects(t)
	s.checkRows(t, "nothing is broken", 1, true)
	for _, state := range states {
		clear(s.verdicts)
		state.begin(s)
		for _, g := range singles {
			if slices.Contains(state.breaks, g.name) {
				s.wantClosed(t, g, state.name)
			}
		}
		reloads := s.instance.Value(s.instance.Metrics.Reloads)
		s.checkRows(t, state.name, state.each, false)
		if n := s.instance.Value(s.instance.Metrics.Reloads) - reloads; s.reloading && n < 10 {
			t.Errorf("%d reloads are too few to show anything", n)
		}
		state.end(s)
	}
	clear(s.verdicts)
	s.checkSingles(t)
	s.checkMirrored(t)
}

// TestFailsClosedWithoutMemory does so where what is counted, cached and remembered has no room.
func TestFailsClosedWithoutMemory(t *testing.T) {
	t.Parallel()
	features := all.Features()
	for i, f := range features {
		f.Resources.Dictionaries = slices.Clone(f.Resources.Dictionaries)
		for j := range f.Resources.Dictionaries {
			f.Resources.Dictionaries[j].Size = 64 << 10
		}
		features[i] = f
	}
	s := startSite(t, headgatetest.Options{Features: features, Timing: headgatetest.Hasty(), Dictionaries: small()})
	for i := range 1000 {
		c := passing
		c.header[1] = fmt.Sprint("no", i)
		s.must(t, "alone.url-cached.test", asking{version: "1.1"}, c)
	}
	for _, g := range singles {
		c := passing
		if g.spoil(&c); s.verdict(t, g, asking{version: "2"}, c).reached() != g.limits {
			t.Errorf("%s: a client that it refuses reaches a backend: %v", g.name, !g.limits)
		}
	}
	s.checkRows(t, "nothing has room", 1, false)
	s.checkMirrored(t)
}

// checkSingles shows that each guard by itself refuses the clients that it should, and no others.
func (s *site) checkSingles(t *testing.T) {
	t.Helper()
	for _, balanced := range []bool{false, true} {
		a := asking{version: "2", balanced: balanced}
		for _, g := range singles {
			refused := passing
			g.spoil(&refused)
			if got := s.verdict(t, g, a, passing); !got.reached() {
				t.Errorf("%s: a client that may pass: %s", g.name, got)
			}
			if got := s.verdict(t, g, a, refused); got.reached() {
				t.Errorf("%s: %+v reaches %s", g.name, refused, got)
			}
		}
	}
	for _, g := range brokenSingles() {
		s.wantClosed(t, g, "nothing is broken")
	}
}

// wantClosed fails the test if a guard lets a client in.
func (s *site) wantClosed(t *testing.T, g single, state string) {
	t.Helper()
	for _, version := range s.versions {
		if got := s.verdict(t, g, asking{version: version}, passing); got.reached() {
			t.Errorf("%s: %s over HTTP/%s: a client reaches %s", state, g.name, version, got)
		}
	}
}

// mirror is an open host.
var mirror = row{bypass: "mirror", also: "none"}.openHost()

// checkEffects shows that those bypasses act that have no outcome of their own.
func (s *site) checkEffects(t *testing.T) {
	t.Helper()
	for _, bypass := range []string{"affinity", "sticky"} {
		r := s.instance.Do(headgatetest.Request{Host: row{bypass: bypass, also: "none"}.openHost(), Header: passing.headers()})
		if r.Header.Get("Set-Cookie") == "" {
			t.Errorf("%s: no cookie", bypass)
		}
	}
	s.must(t, mirror, asking{version: "1.1"}, passing)
	mark := fmt.Sprint(s.sent)
	headgatetest.Eventually(t, "the mirror gets a request", func() bool { return s.mirrored.of(mark) != "" })
}

// checkMirrored fails the test if the mirror has a request that reached no backend.
func (s *site) checkMirrored(t *testing.T) {
	t.Helper()
	// Requests are copied in their order.
	s.must(t, mirror, asking{version: "1.1"}, passing)
	mark := fmt.Sprint(s.sent)
	headgatetest.Eventually(t, "the mirror gets the last request", func() bool { return s.mirrored.of(mark) != "" })
	for _, mark := range s.refused {
		if got := s.mirrored.of(mark); got != "" {
			t.Errorf("the mirror got %s, and no backend did", got)
		}
	}
}

// checkRows has all callers of all rows ask.
func (s *site) checkRows(t *testing.T, state string, each int, sound bool) {
	t.Helper()
	s.combinations, s.lost = 0, 0
	began := time.Now()
	switch {
	case os.Getenv("HEADGATE_NIGHTLY") != "":
		each = 1
	case testing.Short():
		// The other NGINX has been asked for all of them.
		each = max(each, 3)
	}
	for i, r := range s.rows {
		if i%each != 0 {
			continue
		}
		// A multiple of each, so that these rows are among those that are checked.
		if s.reloading && i%36 == 0 {
			s.checkNew(t, i, r)
		}
		s.check(t, r, sound)
		if i%50 == 0 {
			s.rest()
		}
	}
	t.Logf("%s: %d combinations of two guards, a bypass, a request and a client, %d connections lost, %v", state, s.combinations, s.lost, time.Since(began))
}

// checkNew serves a row's host by another name, and has NGINX reloaded. From the first request
// on, its guards act.
func (s *site) checkNew(t *testing.T, i int, r row) {
	t.Helper()
	open := s.open(t, r)
	r.host = fmt.Sprintf("new%d.test", i)
	s.instance.Put(s.config(fmt.Sprint("keep-alive-requests: ", 1000+i)) + allBypasses()[r.bypass].ingresses(r.host, s.address, r.annotations()))
	headgatetest.Eventually(t, r.String()+": it is served", func() bool {
		served := true
		for _, c := range r.callers() {
			if c.again || c.busy {
				continue
			}
			refused, _, _ := s.refuses(t, r, c)
			got, err := s.ask(t, r.host, r.asking, c)
			if refused && got.reached() {
				t.Errorf("%v: %+v reaches %s while NGINX is reloaded", r, c, got)
			}
			served = served && err == nil && (refused || r.atDoor() || got == open)
		}
		return served
	})
}
