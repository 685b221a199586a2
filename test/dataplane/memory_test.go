package dataplane_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// small are dictionaries that a few hundred units fill.
func small() *nginxconf.Dictionaries {
	const size = 256 << 10
	return &nginxconf.Dictionaries{Number: 1, Units: size, Versions: size, Certificates: size}
}

// Larger dictionaries replace smaller ones while hosts and
// certificates come in: no request meets an empty one, and no push is lost.
func TestDictionariesGrowUnderLoad(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	timing := headgatetest.Hasty()
	timing.Drain = 100 * time.Millisecond
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: timing, Dictionaries: small(), Features: namingWorkers(),
		Manifests: served("one", headgatetest.StartEcho(t, "one"))})
	const batches, perBatch = 24, 20
	host := func(n int) string { return fmt.Sprintf("h%d.test", n) }
	var pairs [batches * perBatch]headgatetest.KeyPair
	for n := range pairs {
		pairs[n] = headgatetest.NewKeyPair(t, host(n), host(n))
	}
	put := func(batch int) {
		var all strings.Builder
		for n := batch * perBatch; n < (batch+1)*perBatch; n++ {
			name := fmt.Sprintf("h%d", n)
			all.WriteString(headgatetest.TLSSecret(name, pairs[n]))
			all.WriteString(headgatetest.WithTLS(headgatetest.Ingress(name, host(n), "/", "one"), name+" "+host(n)))
		}
		g.Put(all.String())
	}
	// Hosts below this number are known to be served.
	var known atomic.Int64
	put(0)
	g.WaitSynced()
	known.Store(perBatch)
	check := func(n int) error {
		client := g.NewClient(false)
		defer client.CloseIdleConnections()
		r, err := g.Try(client, headgatetest.Request{Scheme: "https", Host: host(n)})
		if err != nil {
			return fmt.Errorf("%s: %w", host(n), err)
		}
		shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.TLS.PeerCertificates[0].Raw})
		if string(shown) != pairs[n].Certificate {
			return fmt.Errorf("%s shows another certificate, by worker %s", host(n), r.Header.Get("X-Worker"))
		}
		if r.Status != http.StatusOK {
			return fmt.Errorf("%s: status %d by worker %s", host(n), r.Status, r.Header.Get("X-Worker"))
		}
		return nil
	}
	l := startLoad(t, 3, func(int) func() error {
		return func() error { return check(rand.IntN(int(known.Load()))) }
	})
	for batch := 1; batch < batches; batch++ {
		// Those between two waits arrive while NGINX is reloaded, too.
		put(batch)
		if batch%4 == 3 {
			g.WaitSynced()
			known.Store(int64(batch+1) * perBatch)
		}
	}
	g.WaitSynced()
	l.wantNoneWrong(t, 100)
	for n := range pairs {
		if err := check(n); err != nil {
			t.Errorf("in the end: %v", err)
		}
	}
	state := g.State()
	if state.Dictionary < 3 {
		t.Errorf("dictionary %d: it did not grow twice", state.Dictionary)
	}
	if n := g.Value(g.Metrics.Reloads); n != state.Dictionary-1 {
		t.Errorf("%d reloads, want one for each growth to dictionary %d", n, state.Dictionary)
	}
	if n := strings.Count(g.Log.String(), `reason="the shared memory grows"`); n != state.Dictionary-1 {
		t.Errorf("the log gives the reason of %d reloads, want %d", n, state.Dictionary-1)
	}
}

// What would not fit is refused before anything of it is written.
func TestPushThatDoesNotFitChangesNothing(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1, Dictionaries: small()})
	units := startControl(t, g)
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		_, err = g.Client.Push(t.Context(), 1, 1, []unit.Change{filler(fmt.Sprint(n), 4000)})
	}
	if !errors.Is(err, dataplane.ErrFull) {
		t.Fatalf("filling the memory ended with %v", err)
	}
	before, state := apiState(t, g), g.State()
	for i := range units {
		// As valid as before, but much longer.
		units[i].Payload = append(units[i].Payload, bytes.Repeat([]byte(" "), 100<<10)...)
		units[i].Version += "0"
		_, err := g.Client.Push(t.Context(), 1, 1, []unit.Change{filler("0", 10), units[i]})
		if !errors.Is(err, dataplane.ErrFull) {
			t.Errorf("%s: %v, want that it does not fit", units[i].Kind, err)
		}
	}
	if after := apiState(t, g); after != before {
		t.Errorf("units changed, from\n%s\nto\n%s", before, after)
	}
	if now := g.State(); now.Revision != state.Revision || now.Memory != state.Memory {
		t.Errorf("the state changed from %+v to %+v", state, now)
	}
	wantEcho(t, g.Get("control.test", "/"), "control")
}

// filler is a backend that takes room.
func filler(name string, size int) unit.Change {
	payload := `{"endpoints":[]}` + strings.Repeat(" ", size)
	return unit.Change{Kind: "backend", Name: "filler/" + name + "/80", Version: "f", Payload: []byte(payload)}
}

// The controller answers to a push that does not fit with larger dictionaries,
// after which it goes in. What was served before is served all the while.
func TestMemoryGrowsForWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: headgatetest.Hasty(), Dictionaries: small(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("z", "z.test", "/", "one")})
	l := startLoad(t, 2, func(int) func() error {
		return func() error {
			client := g.NewClient(false)
			defer client.CloseIdleConnections()
			r, err := g.Try(client, headgatetest.Request{Host: "z.test"})
			if err != nil {
				return err
			}
			return wantOK(r.Status)
		}
	})
	headgatetest.Eventually(t, "some were asked before", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.asked > 10
	})
	var rules []string
	for n := range 1500 {
		rules = append(rules, fmt.Sprintf("z.test Exact /%s/%d one", strings.Repeat("x", 100), n))
	}
	g.Apply(ruled("more", rules...))
	l.wantNoneWrong(t, 20)
	for _, n := range []int{0, 1499} {
		wantEcho(t, g.Get("z.test", fmt.Sprintf("/%s/%d", strings.Repeat("x", 100), n)), "one")
	}
	if n := g.Value(g.Metrics.PushFailures); n == 0 {
		t.Error("no push was refused, so this shows nothing")
	}
	if text := g.Log.String(); !strings.Contains(text, `reason="the shared memory grows"`) || !strings.Contains(text, dataplane.ErrFull.Error()) {
		t.Error("the log does not say what happened")
	}
}

// A large push must not make other requests wait.
func TestLargePushBlocksNoRequest(t *testing.T) {
	g := headgatetest.StartBare(t, headgatetest.Options{Workers: 1})
	startControl(t, g)
	l := &line{port: g.HTTP}
	defer l.close()
	slowest := func(until <-chan error) (time.Duration, int) {
		var most time.Duration
		for n := 1; ; n++ {
			began := time.Now()
			if err := l.post("control.test"); err != nil {
				t.Fatal(err)
			}
			most = max(most, time.Since(began))
			select {
			case err := <-until:
				if err != nil {
					t.Error(err)
				}
				return most, n
			default:
			}
		}
	}
	push := func(version string) error {
		entries := make([]unit.Change, 10000)
		routes := strings.Repeat(`{"prefix":"/some/path/or/other","backend":1,"location":1,"policies":[1,2]},`, 30)
		for n := range entries {
			payload := fmt.Sprintf(`{"backends":["default/b%d/80"],"locations":["p_0"],"routes":[%s{"exact":"/","location":1}]}`, n, routes)
			entries[n] = unit.Change{Kind: "host", Name: fmt.Sprintf("h%d.test", n), Version: version, Payload: []byte(payload)}
		}
		_, err := g.Client.Push(context.WithoutCancel(t.Context()), 1, 1, entries)
		return err
	}
	// A frame of 256 KiB takes a worker a few milliseconds; the 22 MB in one
	// piece would take it a quarter of a second.
	const bound = 100 * time.Millisecond
	// The machine may hold up a request, but not in each of a few pushes.
	for try := 1; ; try++ {
		resting := make(chan error)
		time.AfterFunc(500*time.Millisecond, func() { close(resting) })
		base, _ := slowest(resting)
		pushed := make(chan error, 1)
		go func() { pushed <- push(strconv.Itoa(try)) }()
		most, asked := slowest(pushed)
		t.Logf("slowest request: %v at rest, %v of %d during the push", base, most, asked)
		if asked < 50 {
			t.Errorf("%d requests are too few to show anything", asked)
		}
		if most <= base+bound {
			break
		}
		if try == 5 {
			t.Errorf("in each of %d pushes a request took too long, in the last one %v, and %v at rest", try, most, base)
			break
		}
	}
	// Each frame must fit NGINX's buffer, or keys would reach the disk.
	if text := g.Log.String(); strings.Contains(text, "temporary file") {
		t.Errorf("a frame was written to a file:\n%s", text)
	}
}
