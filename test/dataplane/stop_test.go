package dataplane_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// leave sends SIGTERM.
func (p *program) leave() {
	p.t.Helper()
	kill(p.t, p.cmd.Process.Pid, syscall.SIGTERM)
}

// wantLeft waits for the program's end and fails the test unless it came in
// good order, or not, and without a process of NGINX left.
func (p *program) wantLeft(master int, goodOrder bool) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(headgatetest.Timeout):
		p.t.Fatal("it did not leave")
	}
	if p.cmd.ProcessState.Success() != goodOrder {
		p.t.Errorf("it left with %s", p.cmd.ProcessState)
	}
	if err := syscall.Kill(-master, 0); err != syscall.ESRCH {
		p.t.Errorf("processes of NGINX are left: %v", err)
	}
}

// ask sends a GET request over a connection of its own.
func (p *program) ask(host, path string) (*http.Response, error) {
	l := &line{port: p.http}
	defer l.close()
	if err := l.send("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"); err != nil {
		return nil, err
	}
	return l.answer()
}

// A closing is the end of NGINX's ports. Connections that are refused from then
// on are not lost; nor are those that the kernel has made and NGINX has not
// accepted when it closes its ports, which it resets.
type closing struct {
	mu sync.Mutex
	// from is when ports may be closed, zero as long as they must not be.
	from           time.Time
	refused, reset int
	first          time.Time // the first refused connection
}

func (c *closing) allow(from time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.from = from
}

// record returns what went wrong with a request unless it met the closing.
// Fresh: it was the first one on its connection.
func (c *closing) record(fresh bool, err error) error {
	refused, reset := errors.Is(err, syscall.ECONNREFUSED), fresh && errors.Is(err, syscall.ECONNRESET)
	if !refused && !reset {
		return err
	}
	// Who was refused comes again, but not at once.
	defer time.Sleep(10 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.from.IsZero() || now.Before(c.from) {
		return err
	}
	if reset {
		c.reset++
		return nil
	}
	if c.refused == 0 {
		c.first = now
	}
	c.refused++
	return nil
}

// On SIGTERM the health checks fail at once, changes count until the grace
// period ends, and no request of a client that keeps its connection is lost.
func checkStopUnderLoad(t *testing.T, binary string) {
	t.Parallel()
	t.Run("no grace period", func(t *testing.T) {
		stopUnderLoad(t, binary, edge.DefaultTiming().Drain, func(*program) {})
	})
	t.Run("2 s", func(t *testing.T) {
		stopUnderLoad(t, binary, 2*time.Second, func(p *program) {
			headgatetest.Eventually(t, "the health check on NGINX's port fails", func() bool {
				r, err := p.ask("unknown.test", "/healthz")
				return err == nil && r.StatusCode == 503 && r.Close
			})
			p.write("manifests/late.yaml", headgatetest.Ingress("b", "late.test", "/", "one"), 0o644)
			headgatetest.Eventually(t, "a change is served in the grace period", func() bool {
				r, err := p.ask("late.test", "/")
				return err == nil && r.StatusCode == 200
			})
		}, "--shutdown-grace-period", "2", "--post-shutdown-grace-period", "1")
	})
}

// stopUnderLoad calls meanwhile in the grace period.
func stopUnderLoad(t *testing.T, binary string, grace time.Duration, meanwhile func(*program), flags ...string) {
	p := startProgram(t, binary, served("one", headgatetest.StartEcho(t, "one"))+headgatetest.Ingress("a", "a.test", "/", "one"), flags...)
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	var c closing
	kept := startLoad(t, 16, func(number int) func() error { return p.keeping(&c, time.Duration(number%2)*grace/3, grace*4/5) })
	fresh := startLoad(t, 2, func(int) func() error {
		return func() error {
			time.Sleep(time.Millisecond)
			r, err := p.ask("a.test", "/")
			if err != nil {
				return c.record(true, err)
			}
			return wantOK(r.StatusCode)
		}
	})
	http2 := startLoad(t, 2, func(int) func() error { return p.overHTTP2(&c) })
	headgatetest.Eventually(t, "a health check on NGINX's port", func() bool {
		r, err := p.ask("unknown.test", "/healthz")
		return err == nil && r.StatusCode == 200
	})

	for _, l := range []*load{kept, fresh, http2} {
		l.awaitAsked(t, 50)
	}

	master := p.master()
	asked := time.Now()
	c.allow(asked.Add(grace))
	p.leave()
	p.wantHealth("on SIGTERM", 500, "shutting down")
	meanwhile(p)
	p.wantLeft(master, true)
	t.Logf("left after %v", time.Since(asked).Round(time.Millisecond))
	for _, l := range []*load{kept, fresh, http2} {
		l.wantNoneWrong(t, 50)
	}
	t.Logf("connections were taken for %v; %d were reset when that ended, %d refused later",
		c.first.Sub(asked).Round(time.Millisecond), c.reset, c.refused)
	if c.refused == 0 {
		t.Error("no client saw the ports closed")
	}
}

// awaitAsked waits until so many requests were answered.
func (l *load) awaitAsked(t *testing.T, least int) {
	t.Helper()
	headgatetest.Eventually(t, "clients are busy", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.asked >= least
	})
}

// keeping asks over a connection that it keeps, pausing in between.
func (p *program) keeping(c *closing, pause, idle time.Duration) func() error {
	l := &line{port: p.http, idle: idle}
	p.t.Cleanup(l.close)
	return func() error {
		time.Sleep(pause)
		l.renew()
		fresh := l.connection == nil
		return c.record(fresh, l.post("a.test"))
	}
}

// overHTTP2 asks over one connection while that lasts.
func (p *program) overHTTP2(c *closing) func() error {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	client := &http.Client{Timeout: headgatetest.Timeout, Transport: &http.Transport{
		Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	p.t.Cleanup(client.CloseIdleConnections)
	return func() error {
		request, err := http.NewRequest(http.MethodPost, "https://"+headgatetest.Address(p.https)+"/", strings.NewReader("hello"))
		if err != nil {
			return err
		}
		request.Host = "a.test"
		response, err := client.Do(request)
		if err != nil {
			// Behind its GOAWAY NGINX closes the connection, and what a client
			// sends just then meets a reset.
			return c.record(true, err)
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		return wantOK(response.StatusCode)
	}
}

// WebSockets and long requests go on until they end, or until NGINX's limit.
func checkStopWithOpenConnections(t *testing.T, binary string) {
	t.Parallel()
	const limit = 2 * time.Second
	drain := edge.DefaultTiming().Drain
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { talkBack(w) }))
	p := startProgram(t, binary, headgatetest.Config("worker-shutdown-timeout: 2s")+served("one", backend)+headgatetest.Ingress("a", "a.test", "/", "one"))
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	socket := p.webSocket("a.test")
	defer socket.close()
	master := p.master()
	asked := time.Now()
	p.leave()
	headgatetest.Eventually(t, "no new connection is taken", func() bool {
		l := &line{port: p.http}
		defer l.close()
		return l.open() != nil
	})
	said := 0
	for ; say(socket, "still there?") == nil; said++ {
		time.Sleep(5 * time.Millisecond)
	}
	lived := time.Since(asked)
	p.wantLeft(master, true)
	t.Logf("the WebSocket lived for %v and said %d lines; it left after %v",
		lived.Round(time.Millisecond), said, time.Since(asked).Round(time.Millisecond))
	if lived < drain+limit*9/10 {
		t.Errorf("the WebSocket lived for %v, want %v", lived, drain+limit)
	}
}

// webSocket opens a connection that sends back what it gets.
func (p *program) webSocket(host string) *line {
	p.t.Helper()
	l := &line{port: p.http}
	if err := l.send("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.ReadResponse(l.reader, nil)
	if err != nil || answer.StatusCode != 101 {
		p.t.Fatalf("%+v, %v; want 101", answer, err)
	}
	return l
}

// An NGINX that is restarted in the grace period is about to end too.
func checkStopAndNGINXDies(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, served("one", headgatetest.StartEcho(t, "one"))+headgatetest.Ingress("a", "a.test", "/", "one"),
		"--shutdown-grace-period", "600")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	p.leave()
	p.wantHealth("on SIGTERM", 500, "shutting down")
	kill(t, -p.master(), syscall.SIGKILL)
	headgatetest.Eventually(t, "requests are answered again, by an NGINX that is about to end", func() bool {
		r, err := p.ask("a.test", "/")
		if err != nil || r.StatusCode != 200 {
			return false
		}
		if health, err := p.ask("unknown.test", "/healthz"); !r.Close || err != nil || health.StatusCode != 503 {
			t.Fatalf("closes: %v; health check: %+v, %v", r.Close, health, err)
		}
		return true
	})
	master := p.master()
	p.leave()
	p.wantLeft(master, false)
}

// A second signal ends what the first one waits for.
func checkSecondSignal(t *testing.T, binary string) {
	t.Parallel()
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { talkBack(w) }))
	for name, c := range map[string]struct {
		flags []string
		open  bool
		// until is what the log says before the second signal.
		until     string
		goodOrder bool
	}{
		"in the grace period":        {[]string{"--shutdown-grace-period", "600"}, true, "shutting down", false},
		"while connections are open": {nil, true, "gracefully shutting down", false},
		"when NGINX has ended":       {[]string{"--post-shutdown-grace-period", "600"}, false, "NGINX has ended", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProgram(t, binary, served("one", backend)+headgatetest.Ingress("a", "a.test", "/", "one"), append(c.flags, "-v=2")...)
			p.open(true)
			p.wantHealth("with NGINX", 200, "ok")
			if c.open {
				defer p.webSocket("a.test").close()
			}
			master := p.master()
			p.leave()
			headgatetest.Eventually(t, c.until, func() bool { return strings.Contains(p.log.String(), c.until) })
			p.wantHealth("before the second signal", 500, "shutting down")
			again := time.Now()
			p.leave()
			p.wantLeft(master, c.goodOrder)
			t.Logf("left %v after the second signal", time.Since(again).Round(time.Millisecond))
		})
	}
}
