package affinity_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// places begins sessions, and returns how many are where.
func (f *fleet) places(t *testing.T, count int) map[string]int {
	t.Helper()
	places := map[string]int{}
	for range count {
		at, _ := f.ask(t, "")
		places[at]++
	}
	return places
}

// With slow-start, an endpoint that is added gets few new sessions at first. Sessions that it
// has stay there, even if they may move after a failure.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, "")
	added := f.addresses[3]
	for _, mode := range []string{"balanced", "persistent"} {
		f.annotate("affinity-mode: "+mode, "slow-start: 15m", "session-cookie-change-on-failure: true")
		f.g.Delete("kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {name: fleet-3}\n")
		f.ask(t, "")
		before := time.Now()
		f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
		const count = 400
		got := f.places(t, count)[added]
		// Consistent hashing gives an endpoint of four no more than two fifths.
		most := max(0.1, time.Since(before).Minutes()/15) * 0.4
		if float64(got) > count*most+5*math.Sqrt(count*most) {
			t.Errorf("%s: %d of %d sessions began at the new endpoint", mode, got, count)
		}
		key := sum(label("fleet") + added)
		for i := 0; mode == "balanced" && place(key, f.addresses) != added; i++ {
			key = fmt.Sprint(i)
		}
		for range 60 {
			f.wantStay(t, mode, map[string]string{"INGRESSCOOKIE=" + key + "|" + mark("fleet"): added}, "")
		}
	}
}

// The same holds for a canary that keeps the sessions of its route.
func TestSlowStartOfCanary(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, "", "affinity-mode: persistent")
	canary := f.addresses[1:]
	f.g.Apply(headgatetest.Service("next") + headgatetest.Endpoints("next", canary[:2]...) +
		headgatetest.Ingress("next", host, "/", "next", "canary: true", "canary-weight: 100", "slow-start: 15m"))
	f.ask(t, "")
	before := time.Now()
	f.g.Apply(headgatetest.Endpoints("next", canary...))
	const count = 400
	places := f.places(t, count)
	most := max(0.1, time.Since(before).Minutes()/15) / 3
	if got := places[canary[2]]; float64(got) > count*most+5*math.Sqrt(count*most) || places[f.addresses[0]] > 0 {
		t.Errorf("the sessions began at %v, the new endpoint is %s", places, canary[2])
	}
	cookie := "INGRESSCOOKIE=" + sum(label("next")+canary[2]) + "|" + mark("next")
	for range 60 {
		f.wantStay(t, "canary", map[string]string{cookie: canary[2]}, "")
	}
}
