package balancing_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// renew takes the last endpoint away and adds it again, with requests in between.
func (f *fleet) renew(t *testing.T) {
	t.Helper()
	f.ask(t, 10, 1, root)
	f.g.Delete(sliceOf(len(f.addresses) - 1))
	f.ask(t, 10, 1, root)
	f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
	f.reset()
}

const longest = 15 * time.Minute

// byTurns is what the last of four endpoints gets if each of its turns is kept as likely as
// that.
func byTurns(kept float64) float64 { return kept / (3 + kept) }

// tolerance is five standard deviations, which no run in a million exceeds.
func tolerance(requests int, share float64) float64 {
	return 5 * math.Sqrt(float64(requests)*share*(1-share))
}

// An endpoint that is added gets a tenth of its share at first, from all workers and also
// after a reload, which neither makes it an old one nor the others new ones.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	algorithms := []string{"round_robin", "least_conn", "random", "ewma"}
	f := newFleet(t, 3+len(algorithms), 2)
	for i := range algorithms {
		f.g.Delete(sliceOf(3 + i))
	}
	for i, algorithm := range algorithms {
		requests := 5000
		// What the endpoint gets of all requests if each of its turns is kept as likely
		// as that.
		want := func(kept float64) float64 { return kept / 4 }
		switch algorithm {
		case "round_robin":
			want, requests = byTurns, 20000
		case "ewma":
			// It is one of the two that are compared in every other case, and may be the
			// faster one in all.
			want = func(kept float64) float64 { return kept / 2 }
		}
		f.annotate("slow-start: 15m", "load-balance: "+algorithm)
		f.ask(t, 10, 1, root)
		before := time.Now()
		// One that no worker has seen.
		f.g.Apply(headgatetest.Endpoints("fleet", append(f.addresses[:3:3], f.addresses[3+i])...))
		check := func(when string, requests int) {
			t.Helper()
			f.reset()
			f.ask(t, requests, 1, root)
			// The machine may be so slow that it has more by now.
			least, most := want(0.1), want(max(0.1, time.Since(before).Seconds()/longest.Seconds()))
			if algorithm == "ewma" {
				least = 0
			}
			got := float64(f.shares()[3+i])
			if got < float64(requests)*least-tolerance(requests, least) || got > float64(requests)*most+tolerance(requests, most) {
				t.Errorf("%s, %s: the new endpoint got %v of %d requests, want a share from %.4f to %.4f", algorithm, when, got, requests, least, most)
			}
			for i, n := range f.shares()[:3] {
				if algorithm != "ewma" && float64(n) < float64(requests)/4 {
					t.Errorf("%s, %s: endpoint %d got %d of %d requests", algorithm, when, i, n, requests)
				}
			}
		}
		check("new", requests)
		f.g.ApplyReloading(headgatetest.Config(keepsConnections, fmt.Sprintf("keep-alive: %d", 60-i)))
		check("after a reload", requests/4)
	}
}

// Its share grows with time.
func TestSlowStartGrows(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const full = 10 * time.Second
	// NGINX reads its clock once for several events.
	const late = time.Second
	f := newFleet(t, 4, 2, "slow-start: 10s")
	f.g.Delete(sliceOf(3))
	f.ask(t, 10, 1, root)
	before := time.Now()
	f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
	f.ask(t, 1, 1, root)
	added := time.Now()
	const requests = 1000
	kept := func(since time.Duration) float64 { return min(1, max(0.1, since.Seconds()/full.Seconds())) }
	for time.Since(added) < full+late {
		f.reset()
		begun := time.Now()
		f.ask(t, requests, 1, root)
		least, most := byTurns(kept(begun.Sub(added)-late)), byTurns(kept(time.Since(before)+late))
		if got := float64(f.shares()[3]); got < requests*least-tolerance(requests, least) || got > requests*most+tolerance(requests, most) {
			t.Errorf("after %v the endpoint got %v of %d requests, want a share from %.3f to %.3f", begun.Sub(added), got, requests, least, most)
		}
	}
}

// evenly reports whether all endpoints get the same of some requests, by turns.
func (f *fleet) evenly(t *testing.T) bool {
	t.Helper()
	f.reset()
	f.ask(t, 10*len(f.counts), 1, root)
	for _, n := range f.shares() {
		if n != 10 {
			return false
		}
	}
	return true
}

// After its time, an endpoint has its share. It has it at once if no other endpoint was there
// before, without the annotation, and if the annotation is removed.
func TestSlowStartIsOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 1, "slow-start: 15m")
	want := func(when string) {
		t.Helper()
		if !f.evenly(t) {
			t.Errorf("%s: the endpoints get %v", when, f.shares())
		}
	}
	want("at the start")
	for i := range f.addresses {
		f.g.Delete(sliceOf(i))
	}
	f.g.Get("fleet.test", "/").WantStatus(t, 503)
	f.g.Apply(headgatetest.Endpoints("fleet", f.addresses...))
	want("from zero")

	f.renew(t)
	if f.evenly(t) {
		t.Error("a new endpoint has its share at once")
	}
	f.annotate()
	want("without the annotation")
	f.renew(t)
	want("new without the annotation")

	f.annotate("slow-start: 1s")
	f.renew(t)
	headgatetest.Eventually(t, "the endpoint gets its share", func() bool {
		for range 10 {
			if !f.evenly(t) {
				return false
			}
		}
		return true
	})
	// An endpoint that is alone gets all.
	f.annotate("slow-start: 15m")
	f.renew(t)
	for i := range 3 {
		f.g.Delete(sliceOf(i))
	}
	f.reset()
	f.ask(t, 20, 1, root)
	if got := f.shares()[3]; got != 20 {
		t.Errorf("the only endpoint got %d of 20 requests", got)
	}
}
