package stream_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream"
	"github.com/headgate/headgate/internal/test/porttest"
)

// timeout bounds every wait. It is far more than anything takes.
const timeout = time.Minute

// A server is a stream.Server with one port of each protocol.
type server struct {
	*stream.Server
	t    *testing.T
	port uint16
	// log is the access log, and logged the other one.
	log, logged lines
	settings    model.StreamSettings

	mu       sync.Mutex
	problems []string
}

type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func (l *lines) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

func start(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, port: porttest.Free(t), settings: model.DefaultStreamSettings()}
	s.Server = stream.New(stream.Settings{AccessLog: &s.log, Log: slog.New(slog.NewTextHandler(&s.logged, &slog.HandlerOptions{Level: slog.LevelWarn})), Problem: func(m model.Stream, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.problems = append(s.problems, m.Name()+" is fine")
			return
		}
		s.problems = append(s.problems, m.Name()+" "+err.Error())
	}})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
	})
	return s
}

// set serves the port with endpoints.
func (s *server) set(protocol string, edit func(*model.Stream), endpoints ...netip.AddrPort) {
	m := model.Stream{Protocol: protocol, Port: s.port, Namespace: "shop", Service: "db", ServicePort: "sql", Endpoints: endpoints}
	if edit != nil {
		edit(&m)
	}
	s.Set(m.Name(), &m)
}

func (s *server) unset(protocol string) {
	m := model.Stream{Protocol: protocol, Port: s.port}
	s.Set(m.Name(), nil)
}

// configure changes the settings of new connections.
func (s *server) configure(edit func(*model.StreamSettings)) {
	s.t.Helper()
	edit(&s.settings)
	s.Configure(s.settings, timeout)
}

func (s *server) format(text string) {
	s.t.Helper()
	format, err := logging.NewStreamFormat(text)
	must(s.t, err)
	s.configure(func(m *model.StreamSettings) { m.LogFormat = format })
}

func (s *server) address(ip string) string {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), s.port).String()
}

func (s *server) dial(network, ip string) net.Conn {
	s.t.Helper()
	c, err := net.Dial(network, s.address(ip))
	must(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	must(s.t, c.SetDeadline(time.Now().Add(timeout)))
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", timeout, what)
		}
	}
}

// named sends its name and echoes what it gets.
func named(t testing.TB, name string) netip.AddrPort {
	return porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = io.WriteString(c, name)
		_, _ = io.Copy(c, c)
	})
}

// dead is the address of a port that nothing listens on.
func dead(t testing.TB) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), porttest.Free(t))
}

func read(t testing.TB, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(b)
}

func readAll(t testing.TB, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	must(t, err)
	return string(b)
}

// TestEcho: bytes of all sizes come back, in both families, and are counted.
func TestEcho(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.format("$protocol $status $bytes_received $bytes_sent $proxy_upstream_name $remote_addr $server_addr:$server_port")
	s.set(model.TCP, nil, porttest.Serve(t, "[::1]:0", func(c *net.TCPConn) { _, _ = io.Copy(c, c) }))
	for i, size := range []int{1, 64, 16 << 10, 16<<10 + 1, 1 << 20, 20 << 20} {
		ip := []string{"127.0.0.1", "::1"}[i%2]
		c := s.dial("tcp", ip)
		sent := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
		go func() {
			_, _ = c.Write(sent)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		if got := readAll(t, c); got != string(sent) {
			t.Errorf("of %d bytes %d came back", size, len(got))
		}
		eventually(t, "the line is logged", func() bool { return len(s.log.list()) == i+1 })
		n := netip.MustParseAddrPort(s.address(ip))
		want := strings.Join([]string{"TCP", "200", itoa(size), itoa(size), "tcp-shop-db-sql", ip, ip + ":" + itoa(int(n.Port()))}, " ")
		if got := s.log.list()[i]; got != want {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
}

// TestHalfClose: each side may end its direction and gets what the other one sends.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	s := start(t)
	got := make(chan string, 1)
	s.set(model.TCP, nil, porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "all I say")
		_ = c.CloseWrite()
		b, _ := io.ReadAll(c)
		got <- string(b)
	}))
	c := s.dial("tcp", "127.0.0.1")
	if text := readAll(t, c); text != "all I say" {
		t.Errorf("the client got %q", text)
	}
	_, err := io.WriteString(c, "I go on")
	must(t, err)
	must(t, c.Close())
	if text := <-got; text != "I go on" {
		t.Errorf("the endpoint got %q", text)
	}
}

// TestEndpoints: endpoints have their turns; a change applies to new connections, and old
// ones go on.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b, c := named(t, "a"), named(t, "b"), named(t, "c")
	s.set(model.TCP, nil, a, b)
	count := map[string]int{}
	var first net.Conn
	for range 10 {
		conn := s.dial("tcp", "127.0.0.1")
		count[read(t, conn, 1)]++
		first = conn
	}
	if count["a"] != 5 || count["b"] != 5 {
		t.Errorf("of 10 connections: %v", count)
	}
	s.set(model.TCP, nil, c)
	if got := read(t, s.dial("tcp", "127.0.0.1"), 1); got != "c" {
		t.Errorf("after the change %s is asked", got)
	}
	_, err := io.WriteString(first, "still")
	must(t, err)
	if got := read(t, first, 5); got != "still" {
		t.Errorf("the old connection got %q", got)
	}
}

// TestDeadEndpoint: another endpoint is tried, and the dead one is left alone for a while.
// Without one, or if that is not allowed, the connection ends with 502.
func TestDeadEndpoint(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.format("$status $upstream_addr")
	gone, alive := dead(t), named(t, "a")
	s.set(model.TCP, nil, gone, alive)
	for range 10 {
		c := s.dial("tcp", "127.0.0.1")
		if got := read(t, c, 1); got != "a" {
			t.Errorf("%q answers", got)
		}
		must(t, c.Close())
	}
	eventually(t, "all are logged", func() bool { return len(s.log.list()) == 10 })
	both := 0
	for _, line := range s.log.list() {
		if line == "200 "+gone.String()+", "+alive.String() {
			both++
		} else if line != "200 "+alive.String() {
			t.Errorf("logged %q", line)
		}
	}
	if both != 1 {
		t.Errorf("the dead endpoint was tried %d times", both)
	}
	s.set(model.TCP, nil, gone, dead(t))
	if got := readAll(t, s.dial("tcp", "127.0.0.1")); got != "" {
		t.Errorf("dead endpoints sent %q", got)
	}
	eventually(t, "502 is logged", func() bool { return strings.HasPrefix(s.log.list()[len(s.log.list())-1], "502 ") })
	s.configure(func(m *model.StreamSettings) { m.NextEndpoint = false })
	s.set(model.TCP, nil, dead(t), dead(t))
	for range 2 {
		_ = readAll(t, s.dial("tcp", "127.0.0.1"))
	}
	eventually(t, "both are logged", func() bool { return len(s.log.list()) == 13 })
	for _, line := range s.log.list()[11:] {
		if !strings.HasPrefix(line, "502 ") || strings.Contains(line, ",") {
			t.Errorf("without proxy-stream-next-upstream: logged %q", line)
		}
	}
}

// TestIdle: an idle connection ends, and one that is used does not.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(model.TCP, nil, named(t, "a"))
	s.configure(func(m *model.StreamSettings) { m.Idle = 300 * time.Millisecond })
	idle := s.dial("tcp", "127.0.0.1")
	read(t, idle, 1) // So it has the limit.
	s.configure(func(m *model.StreamSettings) { m.Idle = timeout })
	used := s.dial("tcp", "127.0.0.1")
	read(t, used, 1)
	if got := readAll(t, idle); got != "" {
		t.Errorf("the idle connection got %q", got)
	}
	_, err := io.WriteString(used, "x")
	must(t, err)
	if got := read(t, used, 1); got != "x" {
		t.Errorf("the other got %q", got)
	}
}

// TestUsedIsNotIdle: a connection that is used all the time, in one direction only, lives
// longer than the limit.
func TestUsedIsNotIdle(t *testing.T) {
	t.Parallel()
	s := start(t)
	const limit = 5 * time.Second
	s.configure(func(m *model.StreamSettings) { m.Idle = limit })
	s.set(model.TCP, nil, porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		for began := time.Now(); time.Since(began) < limit+limit/2; time.Sleep(10 * time.Millisecond) {
			if _, err := io.WriteString(c, "."); err != nil {
				return
			}
		}
		_, _ = io.WriteString(c, "end")
	}))
	if got := readAll(t, s.dial("tcp", "127.0.0.1")); !strings.HasSuffix(got, ".end") {
		t.Errorf("a used connection ended after %d bytes", len(got))
	}
}

// TestSlowReader: a client that does not read delays no other connection.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(model.TCP, nil, porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Write(make([]byte, 64<<20))
	}))
	for range 20 {
		slow := s.dial("tcp", "127.0.0.1")
		read(t, slow, 1)
	}
	c := s.dial("tcp", "127.0.0.1")
	if n := len(readAll(t, c)); n != 64<<20 {
		t.Errorf("%d bytes came", n)
	}
}
