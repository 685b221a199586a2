package stream

import (
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream/socket"
	"github.com/headgate/headgate/internal/test/porttest"
)

// TestLimits: beyond the limit of a process or of a port there is no room, until one ends.
func TestLimits(t *testing.T) {
	t.Parallel()
	l := &limits{most: 2}
	for i, want := range []error{nil, nil, errFull} {
		if err := l.take(i); err != want {
			t.Errorf("connection %d: %v, want %v", i+1, err, want)
		}
	}
	l.give()
	if err := l.take(MaxConnections); err != errFull {
		t.Errorf("a port has more than its limit: %v", err)
	}
	if err := l.take(MaxConnections - 1); err != nil {
		t.Error(err)
	}
	if newLimits().most < 1 {
		t.Error("no connection is allowed at all")
	}
	if 2*socket.MaxPipes > spareFiles/2 {
		t.Errorf("pipes take %d of the %d files that connections leave", 2*socket.MaxPipes, spareFiles)
	}
}

// silent reads until the client ends the connection, with little memory.
func silent(t testing.TB) netip.AddrPort {
	return porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		b := make([]byte, 16)
		for _, err := c.Read(b); err == nil; {
			_, err = c.Read(b)
		}
	})
}

func testServer(t testing.TB, protocol string, endpoint netip.AddrPort, most int64) (s *Server, address string) {
	t.Helper()
	s = New(Settings{Log: slog.New(slog.DiscardHandler)})
	s.limits.most = most
	m := model.Stream{Protocol: protocol, Port: porttest.Free(t), Endpoints: []netip.AddrPort{endpoint}}
	s.Set(m.Name(), &m)
	t.Cleanup(func() { s.Set(m.Name(), nil) })
	return s, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), m.Port).String()
}

func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestFull: a connection beyond the limit is closed and counted, and the others go on.
func TestFull(t *testing.T) {
	t.Parallel()
	s, address := testServer(t, model.TCP, silent(t), 2)
	counted := s.metrics["tcp/"+portOf(t, address)]
	var all []net.Conn
	for i := range 3 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
		waitFor(t, "it is counted", func() bool { return counted.open.Load()+counted.refused.Load() == int64(i+1) })
	}
	if counted.refused.Load() != 1 {
		t.Errorf("%d connections are refused", counted.refused.Load())
	}
	if n, err := all[2].Read(make([]byte, 1)); err == nil {
		t.Errorf("the third reads %d bytes", n)
	}
	all[0].Close()
	waitFor(t, "there is room", func() bool { return counted.open.Load() == 1 })
}

// TestFullUDP: a client that finds no room has the session end that was idle for longest.
func TestFullUDP(t *testing.T) {
	t.Parallel()
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s, address := testServer(t, model.UDP, netip.MustParseAddrPort(silent.LocalAddr().String()), 2)
	got := func(text string) bool {
		c, err := net.Dial("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b := make([]byte, 10)
		for range 2000 {
			if _, err := c.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			_ = silent.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if n, _, err := silent.ReadFrom(b); err == nil && string(b[:n]) == text {
				return true
			}
		}
		return false
	}
	for _, text := range []string{"a", "b", "c", "d"} {
		if !got(text) {
			t.Errorf("the datagram of %s does not come", text)
		}
	}
	if n := s.limits.open.Load(); n > 2 {
		t.Errorf("%d sessions", n)
	}
}

func portOf(t testing.TB, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestIdleMemory: an idle connection takes little memory, and no pipe.
func TestIdleMemory(t *testing.T) {
	const most, connections = 24 << 10, 500
	s, address := testServer(t, model.TCP, silent(t), MaxConnections)
	counted := s.metrics["tcp/"+portOf(t, address)]
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range connections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "all are open", func() bool { return counted.passed.Received.Load() == connections })
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int(after.HeapInuse+after.StackInuse-min(before.HeapInuse+before.StackInuse, after.HeapInuse+after.StackInuse)) / connections
	if t.Logf("%d bytes for each idle connection, with both ends of the test", each); each > most {
		t.Errorf("an idle connection takes %d bytes, want at most %d", each, most)
	}
}
