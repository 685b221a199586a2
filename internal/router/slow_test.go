package router_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

// TestManySlowPatterns sends a path that 200 patterns try for milliseconds each,
// each within its own limit.
func TestManySlowPatterns(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	host := model.Host{Name: "slow.test"}
	for i := range 200 {
		host.Routes = append(host.Routes, model.Route{Kind: model.Pattern, Path: fmt.Sprintf("^/(?:.*.*c|%db)", i)})
	}
	host.Routes = append(host.Routes, model.Route{Kind: model.Pattern, Path: "^/", Backend: "shop/last/80"})
	units := []unit.Unit{
		unit.FromGlobals(model.Globals{}), unit.FromName(model.Name{Name: "slow.test", Host: "slow.test"}), unit.FromHost(host),
	}
	questions := []question{{"slow.test", "/aa"}, {"slow.test", "/" + strings.Repeat("a", 4000)}, {"slow.test", "/199b"}, {"slow.test", "/" + strings.Repeat("a", 4100)}}
	all := map[unit.Key]unit.Unit{}
	for _, u := range units {
		all[u.Key] = u
	}
	// Like Lua's clock, this one runs only while the thread runs: short matches
	// must not seem long on a busy machine.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	worked := func() time.Time {
		var now unix.Timespec
		must(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
		return time.Unix(now.Unix())
	}
	here := router.New(router.Settings{
		Lookup: func(key unit.Key) (unit.Unit, bool) { u, ok := all[key]; return u, ok }, HealthPath: "/healthz", Now: worked,
	})
	for i, answer := range b.decide(t, units, questions) {
		want := "route "
		switch i {
		case 1:
			want = "503 "
		case 3:
			want = "414 "
		}
		if got := ask(here, questions[i]); got != answer || !strings.HasPrefix(got, want) {
			t.Errorf("%.20s: Go %s, Lua %s, want %s", questions[i].path, got, answer, want)
		}
	}
}
