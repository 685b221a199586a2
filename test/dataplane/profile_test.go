package dataplane_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// profilesOf is the number of profiles in nginx.conf, the default one among
// them.
func profilesOf(t *testing.T, g *headgatetest.Instance) int {
	t.Helper()
	conf, err := os.ReadFile(filepath.Join(g.RunDir.Path(), "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`location @p_`).FindAll(conf, -1)) / len(model.Variants())
}

// posting is clients that keep their connections.
func posting(t *testing.T, g *headgatetest.Instance, clients int, host func(turn int) string) *load {
	t.Helper()
	return startLoad(t, clients, func(number int) func() error {
		l := &line{port: g.HTTP, idle: edge.DefaultTiming().Drain * 4 / 5}
		t.Cleanup(l.close)
		turn := number
		return func() error {
			turn++
			return l.post(host(turn))
		}
	})
}

// TestProfilesAreShared: the tuple counts, not the Ingress. A new tuple is one
// reload that loses no request and cuts no WebSocket, and one that goes is none.
func TestProfilesAreShared(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	timing := edge.DefaultTiming()
	timing.ReloadInterval = time.Millisecond
	sizes := []string{"8k", "16k", "32k", "64k", "128k"}
	manifests := served("one", headgatetest.StartEcho(t, "one")) + served("socket", headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { talkBack(w) }))) +
		headgatetest.Ingress("socket", "socket.test", "/", "socket", "proxy-buffer-size: "+sizes[0])
	for i := range 200 {
		manifests += headgatetest.Ingress(fmt.Sprint("i", i), fmt.Sprintf("h%d.test", i), "/", "one", "proxy-buffer-size: "+sizes[i%len(sizes)])
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: &timing, Manifests: manifests})
	if n := profilesOf(t, g); n != len(sizes)+2 {
		t.Errorf("%d profiles beside the default and the strictest one, want %d", n-2, len(sizes))
	}
	socket := &line{port: g.HTTP}
	defer socket.close()
	if err := socket.send("GET /ws HTTP/1.1\r\nHost: socket.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if r, err := http.ReadResponse(socket.reader, nil); err != nil || r.StatusCode != 101 {
		t.Fatalf("%+v, %v", r, err)
	}
	busy := posting(t, g, 8, func(turn int) string { return fmt.Sprintf("h%d.test", turn%200) })
	step := func(what, put, remove string, reloads int) {
		t.Helper()
		before := g.Value(g.Metrics.Reloads)
		if put != "" {
			g.Apply(put)
		} else {
			g.Delete(remove)
		}
		if n := g.Value(g.Metrics.Reloads) - before; n != reloads {
			t.Errorf("%s: %d reloads, want %d", what, n, reloads)
		}
		if err := say(socket, what); err != nil {
			t.Errorf("the WebSocket after %s: %v", what, err)
		}
	}
	step("another Ingress of a known tuple", headgatetest.Ingress("known", "known.test", "/", "one", "proxy-buffer-size: 64k"), "", 0)
	step("the sixth tuple", headgatetest.Ingress("sixth", "sixth.test", "/", "one", "proxy-buffer-size: 1m"), "", 1)
	wantEcho(t, g.Get("sixth.test", "/"), "one")
	step("another value, rounded to a known one", headgatetest.Ingress("seventh", "seventh.test", "/", "one", "proxy-buffer-size: 1000k"), "", 0)
	step("one of two leaves a tuple", "", headgatetest.Ingress("seventh", "seventh.test", "/", "one"), 0)
	step("no route has the tuple any more", "", headgatetest.Ingress("sixth", "sixth.test", "/", "one"), 0)
	step("the tuple comes back", headgatetest.Ingress("sixth", "sixth.test", "/", "one", "proxy-buffer-size: 1m"), "", 0)
	busy.wantNoneWrong(t, 100)
}

// TestManyTuplesAreBounded: one tenant's hundreds of tuples leave others theirs.
func TestManyTuplesAreBounded(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	// A size for each decade of bits and each limit on bodies.
	var tenant strings.Builder
	n := 0
	for _, outcome := range []string{"error", "timeout", "http_500"} {
		for size := 1; size <= 4096; size *= 2 {
			for _, body := range []string{"1k", "2k", "5k", "10k", "20k", "50k", "100k", "200k", "500k", "2m", "5m"} {
				tenant.WriteString(created(2000, headgatetest.Ingress(fmt.Sprint("t", n), fmt.Sprintf("t%d.test", n), "/", "one",
					fmt.Sprintf("proxy-buffer-size: %dk", size), "proxy-body-size: "+body, "proxy-next-upstream: "+outcome)))
				n++
			}
		}
	}
	if n < 400 {
		t.Fatalf("only %d tuples", n)
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		created(2001, headgatetest.Ingress("plain", "plain.test", "/", "one")) +
		created(1990, headgatetest.Ingress("old", "old.test", "/", "one", "proxy-body-size: 2k", "proxy-buffer-size: 256k"))})
	host := func(name string) string {
		t.Helper()
		unit, err := g.Client.Unit(t.Context(), unit.Host.Key(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(unit.Payload)
	}
	old := host("old.test")
	plain := posting(t, g, 2, func(int) string { return "plain.test" })
	before := g.Value(g.Metrics.Reloads)
	g.Apply(tenant.String())
	plain.end()
	// A reload waits a second for hosts that are not built yet.
	if n := g.Value(g.Metrics.Reloads) - before; n > 50 {
		t.Errorf("%d reloads", n)
	}
	// Where a slow machine reloads more than once, hosts that were served before the last
	// reload have profiles there that they will leave with it.
	if n := profilesOf(t, g); n > 401 {
		t.Errorf("%d profiles", n)
	}
	if now := host("old.test"); now != old {
		t.Errorf("an older Ingress was %s and is %s", old, now)
	}
	for i := range n {
		wantEcho(t, g.Get(fmt.Sprintf("t%d.test", i), "/"), "one")
	}
	// The exact limit is the route's own, with any profile.
	for body, want := range map[int]int{1024: 200, 1025: 413} {
		g.Do(headgatetest.Request{Method: "POST", Host: "t0.test", Body: strings.NewReader(strings.Repeat("x", body))}).WantStatus(t, want)
	}
	if got := g.Value(g.Metrics.Findings.WithLabelValues("TooMany")); got < n-200 {
		t.Errorf("%d findings for %d tuples", got, n)
	}
}

// created gives a manifest an age.
func created(year int, manifest string) string {
	return strings.Replace(manifest, "metadata:\n", fmt.Sprintf("metadata:\n  creationTimestamp: \"%d-01-01T00:00:00Z\"\n", year), 1)
}

// TestDynamicSettingsUnderLoad: what is a policy changes for the next request,
// and hurts none.
func TestDynamicSettingsUnderLoad(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one") +
		headgatetest.Ingress("b", "b.test", "/", "one")})
	busy := posting(t, g, 8, func(turn int) string { return []string{"a.test", "b.test"}[turn%2] })
	for i := range 10 {
		for _, annotation := range []string{
			fmt.Sprintf("proxy-next-upstream-tries: %d", 1+i), fmt.Sprintf("proxy-read-timeout: %d", 10+i), fmt.Sprintf("proxy-send-timeout: %d", 10+i),
			fmt.Sprintf("proxy-connect-timeout: %d", 10+i), fmt.Sprintf("proxy-cookie-path: /a /b%d", i), fmt.Sprintf("proxy-cookie-domain: a b%d", i),
			fmt.Sprintf("proxy-redirect-to: /%d", i),
		} {
			g.Apply(headgatetest.Ingress("a", "a.test", "/", "one", annotation, "proxy-redirect-from: /a"))
		}
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads", n)
	}
	busy.wantNoneWrong(t, 100)
}
