package dataplane_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Many clients go by the first Connection line of an answer, so there must be
// no second one that says otherwise.
func TestDrainIsSaidOnce(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("one") +
		headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Ingress("usual", "usual.test", "/", "one") +
		headgatetest.Ingress("jump", "jump.test", "/", "one", "proxy-body-size: 3m") +
		headgatetest.Ingress("force", "force.test", "/", "one", "force-ssl-redirect: true")})
	if err := g.Client.Draining(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for host, status := range map[string]int{"usual.test": 200, "jump.test": 200, "force.test": 308, "unknown.test": 404} {
		answer := askOnce(t, g, "GET /a%2Fb?x= HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		if !strings.HasPrefix(answer, fmt.Sprintf("HTTP/1.1 %d ", status)) ||
			strings.Count(answer, "\r\nConnection: ") != 1 || !strings.Contains(answer, "\r\nConnection: close\r\n") {
			t.Errorf("%s: %s", host, answer)
		}
		if status == 200 && !strings.Contains(answer, `"Target":"/a%2Fb?x="`) {
			t.Errorf("%s: the backend saw another target: %s", host, answer)
		}
	}
	// On the way through a jump NGINX does not look at the length.
	g.Do(headgatetest.Request{Method: http.MethodPost, Host: "usual.test", Body: strings.NewReader(strings.Repeat("x", 1<<20+1))}).WantStatus(t, 413)
	g.Do(headgatetest.Request{Method: http.MethodPost, Host: "usual.test", Body: strings.NewReader(strings.Repeat("x", 1<<20))}).WantStatus(t, 200)
	g.Do(headgatetest.Request{Scheme: "https", HTTP2: true, Host: "usual.test"}).WantStatus(t, 200)
	if n := g.State().Kept; n != 0 {
		t.Errorf("%d requests are kept", n)
	}
	if err := g.Client.Draining(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	l := &line{port: g.HTTP}
	defer l.close()
	if err := errors.Join(l.open(), l.post("usual.test"), l.post("usual.test")); err != nil {
		t.Errorf("after the drain a connection is not kept: %v", err)
	}
}

// askOnce sends a request and returns all that comes until the connection ends,
// which NGINX is to end.
func askOnce(t *testing.T, g *headgatetest.Instance, request string) string {
	t.Helper()
	connection := headgatetest.Dial(t, g.HTTP)
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestUpgradeDuringADrain(t *testing.T) {
	t.Parallel()
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { talkBack(w) }))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("one") + headgatetest.Endpoints("one", backend) +
		headgatetest.Ingress("web", "a.test", "/", "one")})
	if err := g.Client.Draining(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	l := &line{port: g.HTTP}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Header["Connection"]; answer.StatusCode != 101 || len(got) != 1 || !strings.EqualFold(got[0], "upgrade") {
		t.Errorf("status %d, Connection: %q", answer.StatusCode, got)
	}
}

// A host that waits for a profile is served meanwhile, and must not keep the others from
// being served when NGINX is restarted.
func TestRestartWhileAHostIsHeld(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	timing := edge.DefaultTiming()
	timing.ReloadInterval = time.Hour
	g := headgatetest.Start(t, headgatetest.Options{Timing: &timing, Manifests: headgatetest.Service("one") +
		headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("other", "other.test", "/", "one")})
	g.Put(headgatetest.Ingress("first", "first.test", "/", "one", "proxy-body-size: 2m"))
	headgatetest.Eventually(t, "the first reload", func() bool { return g.Value(g.Metrics.Reloads) == 1 })
	// This one's reload is an hour away.
	g.Put(headgatetest.Ingress("held", "held.test", "/", "one", "proxy-body-size: 3m"))
	g.Put(headgatetest.Ingress("mark", "mark.test", "/", "one"))
	headgatetest.Eventually(t, "what is not held is served", func() bool { return g.Get("mark.test", "/").Status == 200 })
	g.Get("held.test", "/").WantStatus(t, 200)
	if n := g.Value(g.Metrics.WaitingHosts); n != 1 {
		t.Errorf("%d hosts wait, want 1", n)
	}

	if err := syscall.Kill(g.Process.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(os.NewSyscallError("kill", err))
	}
	headgatetest.Eventually(t, "NGINX was restarted", func() bool { return g.Value(g.Metrics.Restarts) == 1 })
	headgatetest.Eventually(t, "the host that is not held is served", func() bool {
		client := g.NewClient(false)
		defer client.CloseIdleConnections()
		r, err := g.Try(client, headgatetest.Request{Host: "other.test"})
		return err == nil && r.Status == 200
	})
	// A reload that must be does not wait for the hour now.
	g.WaitSynced()
	g.Get("held.test", "/").WantStatus(t, 200)
}
