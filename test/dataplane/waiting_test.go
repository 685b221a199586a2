package dataplane_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// inNamespace moves what a manifest has into a namespace.
func inNamespace(namespace, manifest string) string {
	return strings.NewReplacer("metadata:\n", "metadata:\n  namespace: "+namespace+"\n", "metadata: {", "metadata: {namespace: "+namespace+", ").Replace(manifest)
}

// socketBackend talks back on WebSockets.
func socketBackend(t *testing.T) string {
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { talkBack(w) }))
}

// openSocket opens a WebSocket to a host.
func openSocket(t *testing.T, g *headgatetest.Instance, host string) *line {
	t.Helper()
	socket := &line{port: g.HTTP}
	t.Cleanup(socket.close)
	if err := socket.send("GET /ws HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if r, err := http.ReadResponse(socket.reader, nil); err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", r, err)
	}
	return socket
}

// workersOf are the number of NGINX's workers, and their memory in MB.
func workersOf(t *testing.T, g *headgatetest.Instance) (workers, megabytes int) {
	t.Helper()
	children, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range children {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 22 || fields[1] != strconv.Itoa(g.Process.PID()) {
			continue
		}
		pages, err := strconv.Atoi(fields[21])
		if err != nil {
			t.Fatal(err)
		}
		workers++
		megabytes += pages * os.Getpagesize() >> 20
	}
	return workers, megabytes
}

// TestReloadStorm: a tenant who writes new combinations without end, and holds
// connections open, gets few reloads. The old workers, their memory and what other
// tenants have are bounded, and an administrator's change passes by.
func TestReloadStorm(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	timing := edge.DefaultTiming()
	timing.Drain, timing.ReloadInterval = time.Millisecond, 10*time.Millisecond
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: &timing, Manifests: served("socket", socketBackend(t)) + served("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Ingress("quiet", "quiet.test", "/", "socket") + headgatetest.Ingress("plain", "plain.test", "/", "one")})
	quiet := openSocket(t, g, "quiet.test")
	_, before := workersOf(t, g)

	storm := func(n int) string {
		return inNamespace("evil", served("socket", socketBackend(t))+
			headgatetest.Ingress("evil", "evil.test", "/", "socket", fmt.Sprintf("proxy-buffer-size: %dk", 8<<(n%8)), fmt.Sprintf("proxy-buffers-number: %d", 8<<(n/8))))
	}
	const changes = 24
	for n := range changes {
		reloads := g.Value(g.Metrics.Reloads)
		g.Put(storm(n))
		headgatetest.Eventually(t, "a reload, or none", func() bool {
			return g.Value(g.Metrics.Reloads) > reloads || g.Value(g.Metrics.ReloadsHeldBack.WithLabelValues("generations"))+g.Value(g.Metrics.ReloadsHeldBack.WithLabelValues("rate")) > 0
		})
		openSocket(t, g, "evil.test")
		if err := say(quiet, "still there"); err != nil {
			t.Fatalf("another tenant's WebSocket after %d changes: %v", n+1, err)
		}
	}
	reloads := g.Value(g.Metrics.Reloads)
	workers, after := workersOf(t, g)
	t.Logf("%d changes: %d reloads, %d workers, %d MB before and %d after", changes, reloads, workers, before, after)
	if reloads > 3 || workers > 4 {
		t.Errorf("%d reloads and %d workers, want 3 and 4 at most", reloads, workers)
	}
	if old, generations := g.Value(g.Metrics.OldWorkers), g.Value(g.Metrics.OldGenerations); old != workers-1 || generations != 3 {
		t.Errorf("the metrics say %d old workers of %d generations", old, generations)
	}
	if n := g.Value(g.Metrics.WaitingHosts); n != 1 {
		t.Errorf("%d hosts wait, want 1", n)
	}
	if n := g.Value(g.Metrics.Findings.WithLabelValues("Waits")); n != 1 {
		t.Errorf("%d findings about hosts that wait", n)
	}
	// An administrator's monitoring is not to notice.
	headgatetest.Eventually(t, "all but that host is applied", g.Applied)
	if g.Synced() {
		t.Error("a host waits, and everything is said to be served")
	}
	if err := g.Check(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}

	// The administrator need not wait, and takes along what waits.
	g.Put(headgatetest.Config("keep-alive-requests: 100007"))
	headgatetest.Eventually(t, "the administrator's reload", func() bool { return g.Value(g.Metrics.Reloads) > reloads })
	g.WaitSynced()
	if n := g.Value(g.Metrics.WaitingHosts) + g.Value(g.Metrics.Findings.WithLabelValues("Waits")); n != 0 {
		t.Error("hosts still wait")
	}
	if err := say(quiet, "to the end"); err != nil {
		t.Errorf("another tenant's WebSocket: %v", err)
	}
}

// TestReloadRate: without old workers, reloads are bounded by rate.
func TestReloadRate(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	timing := edge.DefaultTiming()
	timing.Drain, timing.ReloadInterval = time.Millisecond, time.Millisecond
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: &timing, Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Config("reload-burst: 2", "reload-interval: 1h")})
	for n := range 5 {
		g.Put(headgatetest.Ingress("a", "a.test", "/", "one", fmt.Sprintf("proxy-buffer-size: %dk", 8<<n)))
		headgatetest.Eventually(t, "the change", func() bool {
			return g.Value(g.Metrics.Reloads) == n+1 || g.Value(g.Metrics.ReloadsHeldBack.WithLabelValues("rate")) > 0
		})
		wantEcho(t, g.Get("a.test", "/"), "one")
	}
	if n := g.Value(g.Metrics.Reloads); n != 2 {
		t.Errorf("%d reloads, want 2", n)
	}
	g.Apply(headgatetest.Config("reload-burst: 2", "reload-interval: 1ms"))
	if n := g.Value(g.Metrics.Reloads); n != 3 {
		t.Errorf("%d reloads after the limit was lifted, want 3", n)
	}
}

// TestGuardsDontWait: a guard, or the removal of a user, comes into effect with its change,
// although the same change needs a reload that comes late or never.
func TestGuardsDontWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manifests string
		first     string
		ready     func(*headgatetest.Instance) bool
	}{
		"after another reload": {"", headgatetest.Ingress("other", "other.test", "/", "one", "proxy-buffer-size: 8k"),
			func(g *headgatetest.Instance) bool {
				return g.Value(g.Metrics.Reloads) == 1 && g.Value(g.Metrics.WaitingHosts) == 0
			}},
		"no budget": {headgatetest.Config("reload-burst: 1", "reload-interval: 1h"), headgatetest.Ingress("other", "other.test", "/", "one", "proxy-buffer-size: 8k"),
			func(g *headgatetest.Instance) bool {
				return g.Value(g.Metrics.Reloads) == 1 && g.Value(g.Metrics.WaitingHosts) == 0
			}},
		"nginx -t fails": {"", headgatetest.Ingress("other", "other.test", "/", "one", "poison: true"),
			func(g *headgatetest.Instance) bool { return g.Value(g.Metrics.ReloadFailures) > 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := func(users string) string {
				return "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: '" + users + "'}\n"
			}
			guard := []string{"auth-type: basic", "auth-secret: users"}
			g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Features: poisoning(), Manifests: served("one", headgatetest.StartEcho(t, "one")) + c.manifests +
				secret("user:{PLAIN}pass") + headgatetest.Ingress("open", "open.test", "/", "one") + headgatetest.Ingress("users", "users.test", "/", "one", guard...)})
			user := http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}}
			g.Put(c.first)
			headgatetest.Eventually(t, name, func() bool { return c.ready(g) })
			g.Do(headgatetest.Request{Host: "users.test", Header: user}).WantStatus(t, 200)
			g.Get("open.test", "/").WantStatus(t, 200)

			reloads, pushed := g.Value(g.Metrics.Reloads), g.Value(g.Metrics.Pushed.WithLabelValues("host"))
			began := time.Now()
			g.Put(headgatetest.Ingress("open", "open.test", "/", "one", append(guard, "proxy-buffer-size: 256k")...) +
				headgatetest.Ingress("users", "users.test", "/", "one", append(guard, "proxy-buffer-size: 512k")...) + secret("other:{PLAIN}pass"))
			before, after := 0, 0
			for closed := 0; closed < 50; closed++ {
				isPushed := g.Value(g.Metrics.Pushed.WithLabelValues("host")) >= pushed+2
				status, again := g.Get("open.test", "/").Status, g.Do(headgatetest.Request{Host: "users.test", Header: user}).Status
				isIn := status != http.StatusUnauthorized || again != http.StatusUnauthorized
				switch {
				case isIn && isPushed:
					after++
				case isIn:
					before++
					closed = 0
				}
				if g.Value(g.Metrics.Reloads) > reloads {
					t.Fatalf("%d requests were let in until the reload", before)
				}
			}
			t.Logf("%d requests were let in before the push, and %d after; %v in all", before, after, time.Since(began))
			if after > 0 {
				t.Errorf("%d requests were let in", after)
			}
			if n := g.Value(g.Metrics.WaitingHosts); n < 2 {
				t.Errorf("%d hosts wait: nothing is shown", n)
			}
		})
	}
}

// TestFairProfiles: older Ingresses of one namespace don't take away what others have.
func TestFairProfiles(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: inNamespace("team-a", served("one", headgatetest.StartEcho(t, "one"))+
		created(2010, headgatetest.Ingress("a", "a.test", "/", "one", "proxy-body-size: 20m")))})
	post := func(what string) {
		t.Helper()
		r := g.Do(headgatetest.Request{Method: "POST", Host: "a.test", Body: unsized{strings.NewReader(strings.Repeat("x", 3<<20))}})
		t.Logf("%s: %d", what, r.Status)
		r.WantStatus(t, 200)
	}
	post("before")
	var rival strings.Builder
	for n := range 205 {
		rival.WriteString(inNamespace("team-b", created(2000, headgatetest.Ingress(fmt.Sprint("b", n), fmt.Sprintf("b%d.test", n), "/", "one",
			fmt.Sprintf("proxy-buffer-size: %dk", 1<<(n%13)), "proxy-body-size: "+strings.Fields("1k 2k 5k 10k 20k 50k 100k 200k")[n/13%8],
			"proxy-next-upstream: "+[]string{"error", "timeout"}[n/104]))))
	}
	g.Apply(rival.String())
	post("behind 205 older Ingresses of another namespace")
	if n := profilesOf(t, g); n > 201 {
		t.Errorf("%d profiles", n)
	}
}
