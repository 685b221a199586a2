package listen_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func start(t *testing.T, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), MorePorts: true, Manifests: headgatetest.Ingress("web", "a.test", "/", "a") +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.Config(keys...)})
}

// opens reports whether a port is open at an address. It is closed only if the connection is refused.
func opens(t *testing.T, address string, port uint16) bool {
	t.Helper()
	connection, err := net.Dial("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err == nil {
		connection.Close()
		return true
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal(err)
	}
	return false
}

// wantOpen checks at which of the first addresses of loopback the ports for http and https are open.
func wantOpen(t *testing.T, g *headgatetest.Instance, what string, want ...string) {
	t.Helper()
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		for _, port := range []uint16{g.HTTP, g.HTTPS} {
			wanted := strings.Contains(strings.Join(want, ","), address)
			if got := opens(t, address, port); got != wanted {
				t.Errorf("%s: %s:%d is open: %v", what, address, port, got)
			}
		}
		if !opens(t, address, g.DefaultServer) {
			t.Errorf("%s: the port of the default server is not open at %s", what, address)
		}
	}
	g.Get("a.test", "/").WantStatus(t, 200)
}

// sockets is how many sockets of this machine listen on the port for http.
func sockets(t *testing.T, g *headgatetest.Instance) int {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", g.HTTP)) && fields[3] == "0A" {
			n++
		}
	}
	return n
}

// The addresses change without an end of NGINX, also where one socket of the whole port and one of an
// address can't be open together.
func TestAddressesChangeLive(t *testing.T) {
	t.Parallel()
	g := start(t)
	all := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	wantOpen(t, g, "at first", all...)
	for _, step := range []struct {
		keys    []string
		open    []string
		sockets int
	}{
		{[]string{"bind-address: 127.0.0.1"}, all[:1], 2},
		{[]string{"bind-address: 127.0.0.1,127.0.0.2"}, all[:2], 4},
		{nil, all, 2},
		{[]string{"bind-address: 127.0.0.1"}, all[:1], 2},
		{[]string{"bind-address: 127.0.0.1,0.0.0.0"}, all, 2},
		{[]string{"reuse-port: false"}, all, 1},
		{[]string{"reuse-port: false", "bind-address: 127.0.0.1,127.0.0.3"}, []string{all[0], all[2]}, 2},
		{[]string{"reuse-port: false"}, all, 1},
		{[]string{"bind-address: 127.0.0.1"}, all[:1], 2},
		{[]string{"reuse-port: false", "bind-address: 127.0.0.1"}, all[:1], 1},
		{[]string{"disable-ipv6: true"}, all, 2},
	} {
		before := g.Process.PID()
		g.Apply(headgatetest.Config(step.keys...))
		wantOpen(t, g, fmt.Sprint(step.keys), step.open...)
		if n := sockets(t, g); n != step.sockets {
			t.Errorf("%v: %d sockets, want %d", step.keys, n, step.sockets)
		}
		if g.Process.PID() != before {
			t.Errorf("%v: NGINX was started again", step.keys)
		}
	}
	if n := g.Value(g.Metrics.ReloadFailures); n > 0 {
		t.Errorf("%d reloads failed", n)
	}
}

// An address that the machine lacks is left out. Without any other, the last ones stay; at the start it is
// the loopback address.
func TestMissingAddress(t *testing.T) {
	t.Parallel()
	const missing = "192.0.2.1" // No machine has it.
	g := start(t, "bind-address: "+missing)
	wantOpen(t, g, "at the start", "127.0.0.1")
	g.Apply(headgatetest.Config("bind-address: 127.0.0.1,127.0.0.2"))
	wantOpen(t, g, "two", "127.0.0.1", "127.0.0.2")
	g.Apply(headgatetest.Config("bind-address: " + missing))
	wantOpen(t, g, "still", "127.0.0.1", "127.0.0.2")
	g.Apply(headgatetest.Config("bind-address: 127.0.0.1," + missing))
	wantOpen(t, g, "the other", "127.0.0.1")
	for _, want := range []string{
		"this machine does not have the address", "listening on 127.0.0.1 alone until it is there",
		"still listening on 127.0.0.1,127.0.0.2 until it is there", "listening on the other addresses until it is there",
	} {
		if !strings.Contains(g.Log.String(), want) {
			t.Errorf("no finding says %q", want)
		}
	}
	if n := g.Value(g.Metrics.ReloadFailures); n > 0 {
		t.Errorf("%d reloads failed", n)
	}
}

// Where another process has the port at an address, a reload for all of them would fail.
func TestTakenAddress(t *testing.T) {
	t.Parallel()
	g := start(t, "bind-address: 127.0.0.1")
	other, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", g.HTTPS))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	g.Apply(headgatetest.Config("bind-address: 127.0.0.1,127.0.0.2,127.0.0.3"))
	if opens(t, "127.0.0.2", g.HTTP) || !opens(t, "127.0.0.3", g.HTTP) {
		t.Error("not all but the address that is taken are open")
	}
	g.Apply(headgatetest.Config())
	if opens(t, "127.0.0.2", g.HTTP) {
		t.Error("all addresses are open")
	}
	if !strings.Contains(g.Log.String(), "is in use by listen.test") {
		t.Error("no finding says what has the port")
	}
	other.Close()
	headgatetest.Eventually(t, "all addresses are open", func() bool { return opens(t, "127.0.0.2", g.HTTP) })
	wantOpen(t, g, "at last", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	if n := g.Value(g.Metrics.ReloadFailures); n > 0 {
		t.Errorf("%d reloads failed", n)
	}
}

// A change of the addresses loses no request to one that is open before and after it. Between all addresses
// and a list, the kernel resets the connections that a closed socket had not handed over yet, and those alone.
func TestChangeLosesNothing(t *testing.T) {
	t.Parallel()
	g := start(t, "bind-address: 127.0.0.1")
	request := func() error {
		client := g.NewClient(false)
		defer client.CloseIdleConnections()
		r, err := g.Try(client, headgatetest.Request{Host: "a.test"})
		if err == nil && r.Status != http.StatusOK {
			return fmt.Errorf("status %d", r.Status)
		}
		return err
	}
	// during makes changes while requests are sent one after the other, and returns how many were answered and what else became of them.
	during := func(changes ...[]string) (answered int, lost []error) {
		done, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := request(); err == nil {
					answered++
				} else {
					lost = append(lost, err)
				}
			}
		}()
		defer func() { close(done); <-ended }()
		for _, keys := range changes {
			g.ApplyReloading(headgatetest.Config(keys...))
		}
		return
	}
	const one = "bind-address: 127.0.0.1"
	if _, lost := during([]string{one + ",127.0.0.2"}, []string{one}, []string{one + ",127.0.0.3"}, []string{one}); lost != nil {
		t.Error(lost)
	}
	answered, lost := during(nil, []string{one})
	if len(lost) > answered/10 || slices.ContainsFunc(lost, func(err error) bool { return !errors.Is(err, syscall.ECONNRESET) }) {
		t.Errorf("%d answered, lost: %v", answered, lost)
	}
}
