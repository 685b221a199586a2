package dataplane_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// A unit may name profiles that only a newer generation has. A worker must not
// serve it with another one, which could lack its access control.
func TestUnitOfALaterGeneration(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		served("two", headgatetest.StartEcho(t, "two")) + headgatetest.Ingress("a", "known.test", "/", "one") + headgatetest.Ingress("b", "other.test", "/", "two")})
	wantEcho(t, g.Get("known.test", "/"), "one")
	wantEcho(t, g.Get("other.test", "/"), "two")

	known, err := g.Client.Unit(t.Context(), unit.Host.Key("known.test"))
	if err != nil {
		t.Fatal(err)
	}
	state := g.State()
	next := state.Generation + 1
	_, err = g.Client.Push(t.Context(), state.Dictionary, state.Generation, []unit.Change{
		{Kind: "host", Name: "known.test", Needs: next, Version: "1", Same: known.Version, Payload: []byte(strings.ReplaceAll(string(known.Payload), "default/one/80", "default/two/80"))},
		{Kind: "host", Name: "other.test", Needs: next, Version: "4", Payload: known.Payload},
		{Kind: "host", Name: "new.test", Needs: next, Version: "2", Payload: known.Payload},
		{Kind: "name", Name: "new.test", Version: "3", Payload: []byte(`{"host":"new.test"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantEcho(t, g.Get("known.test", "/"), "one")
		g.Get("new.test", "/").WantStatus(t, 503)
		g.Get("other.test", "/").WantStatus(t, 503)
	}
	// The worker stays with its version while that is known to have the same guards.
	for _, c := range []struct {
		version, same string
		status        int
	}{{"5", known.Version, 200}, {"6", "", 503}, {"7", known.Version, 503}} {
		if _, err = g.Client.Push(t.Context(), state.Dictionary, state.Generation, []unit.Change{
			{Kind: "host", Name: "known.test", Needs: next, Version: c.version, Same: c.same, Payload: []byte(strings.ReplaceAll(string(known.Payload), "default/one/80", "default/two/80"))},
		}); err != nil {
			t.Fatal(err)
		}
		g.Get("known.test", "/").WantStatus(t, c.status)
	}
	reload(t, g)
	wantEcho(t, g.Get("known.test", "/"), "two")
	wantEcho(t, g.Get("new.test", "/"), "one")
	wantEcho(t, g.Get("other.test", "/"), "one")
}

// A request whose head is half read when NGINX is reloaded is routed by the
// old worker, which lacks the new profile. It must not go by the version of the host
// from before a guard.
func TestHalfReadRequestMeetsAReload(t *testing.T) {
	t.Parallel()
	const profile = "proxy-buffer-size: 64k"
	before := headgatetest.Ingress("a", "known.test", "/", "one") + headgatetest.Ingress("b", "new.test", "/", "one") + headgatetest.Ingress("d", "open.test", "/", "one")
	after := headgatetest.Ingress("a", "known.test", "/", "two", profile) + headgatetest.Ingress("b", "new.test", "/", "two", profile) +
		headgatetest.Ingress("d", "open.test", "/", "one", profile, "auth-type: basic", "auth-secret: users") +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n"
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Features: namingWorkers(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + served("two", headgatetest.StartEcho(t, "two")) +
			before + headgatetest.Ingress("c", "user-of-one.test", "/", "one")})
	wantEcho(t, g.Get("known.test", "/"), "one")
	wantEcho(t, g.Get("open.test", "/"), "one")

	known, fresh, open := &line{port: g.HTTP}, &line{port: g.HTTP}, &line{port: g.HTTP}
	defer known.close()
	defer fresh.close()
	defer open.close()
	for host, l := range map[string]*line{"known.test": known, "new.test": fresh, "open.test": open} {
		if err := l.send("GET / HTTP/1.1\r\nHost: " + host + "\r\nX-Half: "); err != nil {
			t.Fatal(err)
		}
	}
	// All connections are accepted in order, and before this one.
	g.Get("known.test", "/").WantStatus(t, 200)
	g.Apply(after)
	wantEcho(t, g.Get("known.test", "/"), "two")
	wantEcho(t, g.Get("new.test", "/"), "two")

	finish := func(l *line, status int) http.Header {
		if err := l.send("sent\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := l.answer()
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != status {
			t.Errorf("status %d, want %d", r.StatusCode, status)
		}
		return r.Header
	}
	header := finish(known, 200)
	if backend, w := header.Get("X-Echo"), workerOf(t, header); backend != "one" || w.generation != 1 {
		t.Errorf("backend %s by a worker of generation %d, want the one that the old worker knows", backend, w.generation)
	}
	finish(fresh, 503)
	finish(open, 503)
}

// Once a reload is reported done, no old worker answers a new connection.
func TestReloadIsDoneWhenOldWorkersAreGone(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: headgatetest.Hasty(), Features: namingWorkers(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one")})
	l := startLoad(t, 3, func(int) func() error {
		return func() error {
			client := g.NewClient(false)
			defer client.CloseIdleConnections()
			r, err := g.Try(client, headgatetest.Request{Host: "a.test"})
			if err != nil {
				// A connection that waited for an old worker when it left.
				return nil
			}
			return wantOK(r.Status)
		}
	})
	const reloads, asked = 20, 20
	old := 0
	for n := range reloads {
		reload(t, g)
		for range asked {
			if w := workerOf(t, g.Get("a.test", "/").Header); w.generation != n+2 {
				old++
			}
		}
	}
	if old > 0 {
		t.Errorf("%d of %d answers came from old workers after the reload was done", old, reloads*asked)
	}
	l.wantNoneWrong(t, 100)
	if text := g.Log.String(); strings.Contains(text, "workers are not as expected") {
		t.Error("a reload was given up waiting for")
	}
}

// Busy clients lose nothing by a reload: they are asked to leave before it.
func TestReloadLosesNoRequest(t *testing.T) {
	timing := edge.DefaultTiming()
	timing.ReloadInterval = time.Millisecond
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Timing: &timing,
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one") +
			headgatetest.TLSSecret("b", headgatetest.NewKeyPair(t, "b.test", "b.test")) + headgatetest.WithTLS(headgatetest.Ingress("b", "b.test", "/", "one"), "b b.test")})
	busy := startLoad(t, 32, func(int) func() error {
		l := &line{port: g.HTTP, idle: timing.Drain * 4 / 5}
		t.Cleanup(l.close)
		return func() error { return l.post("a.test") }
	})
	// Clients that pause are not lost either, if they ask during the drain.
	pausing := startLoad(t, 8, func(int) func() error {
		l := &line{port: g.HTTP, idle: timing.Drain * 4 / 5}
		t.Cleanup(l.close)
		return func() error {
			time.Sleep(timing.Drain * 2 / 5)
			return l.post("a.test")
		}
	})
	http2 := startLoad(t, 2, func(int) func() error {
		client := g.NewClient(true)
		t.Cleanup(client.CloseIdleConnections)
		return func() error {
			r, err := g.Try(client, headgatetest.Request{Method: "POST", Scheme: "https", Host: "b.test", Body: strings.NewReader("hello"), HTTP2: true})
			if err != nil {
				return err
			}
			return wantOK(r.Status)
		}
	})
	for range 8 {
		reload(t, g)
	}
	busy.wantNoneWrong(t, 2000)
	pausing.wantNoneWrong(t, 100)
	// NGINX ends an HTTP/2 connection with GOAWAY, which says what it has not
	// processed; clients send that again on another one.
	http2.wantNoneWrong(t, 100)
}

// A dynamic change touches no connection; a reload leaves them to old workers.
func TestOpenConnectionsOutliveChanges(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			talkBack(w)
			return
		}
		for range more {
			fmt.Fprintln(w, "more")
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		}
	}))
	defer close(more)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Features: namingWorkers(),
		Manifests: served("one", backend) + served("two", headgatetest.StartEcho(t, "two")) + headgatetest.Ingress("a", "a.test", "/", "one")})

	socket, stream := &line{port: g.HTTP}, &line{port: g.HTTP}
	defer socket.close()
	defer stream.close()
	open := func(l *line, request string, status int) *http.Response {
		if err := l.send(request); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(l.reader, nil)
		if err != nil || r.StatusCode != status {
			t.Fatalf("%+v, %v; want %d", r, err, status)
		}
		return r
	}
	open(socket, "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 101)
	go func() { more <- struct{}{} }()
	streamed := open(stream, "GET /stream HTTP/1.1\r\nHost: a.test\r\n\r\n", 200)
	buffer := make([]byte, len("more\n"))
	read := func() error {
		_, err := io.ReadFull(streamed.Body, buffer)
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	wantOpen := func(when string) {
		t.Helper()
		if err := say(socket, when); err != nil {
			t.Errorf("the WebSocket %s: %v", when, err)
		}
		more <- struct{}{}
		if err := read(); err != nil || string(buffer) != "more\n" {
			t.Errorf("the stream %s: %q, %v", when, buffer, err)
		}
	}
	wantOpen("before any change")
	g.Apply(headgatetest.Ingress("a", "a.test", "/", "two", "ssl-redirect: false"))
	wantEcho(t, g.Get("a.test", "/"), "two")
	g.Delete(headgatetest.Ingress("a", "a.test", "/", "two"))
	wantOpen("after its host is gone")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads for dynamic changes", n)
	}
	g.Apply(headgatetest.Ingress("a", "a.test", "/", "two"))
	for range 2 {
		reload(t, g)
	}
	if w := workerOf(t, g.Get("a.test", "/").Header); w.generation != 3 {
		t.Errorf("generation %d answers, want 3", w.generation)
	}
	wantOpen("after two reloads")
}

// talkBack sends back what comes on an upgraded connection.
func talkBack(w http.ResponseWriter) {
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		return
	}
	// It ends with the connection.
	_, _ = io.Copy(connection, buffered)
}

// say sends a line and wants it back.
func say(l *line, text string) error {
	if err := l.send(text + "\n"); err != nil {
		return err
	}
	back, err := l.reader.ReadString('\n')
	if err == nil && back != text+"\n" {
		err = errors.New("got back " + back)
	}
	return err
}
