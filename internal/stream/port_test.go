package stream_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
)

// TestPort: a port opens and closes; connections drain until the limit; a port that is in
// use is reported and opened later.
func TestPort(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := named(t, "a")
	s.set(model.TCP, nil)
	refused := func() bool {
		c, err := net.Dial("tcp", s.address("127.0.0.1"))
		if err == nil {
			c.Close()
		}
		return err != nil
	}
	if !refused() {
		t.Error("without endpoints the port is open")
	}
	s.set(model.TCP, nil, a)
	old := s.dial("tcp", "127.0.0.1")
	read(t, old, 1)
	s.unset(model.TCP)
	if !refused() {
		t.Error("the port is open still")
	}
	_, err := io.WriteString(old, "x")
	must(t, err)
	if got := read(t, old, 1); got != "x" {
		t.Errorf("the draining connection got %q", got)
	}
	other, err := net.Listen("tcp", s.address("127.0.0.1"))
	must(t, err)
	s.set(model.TCP, nil, a)
	s.mu.Lock()
	if len(s.problems) != 1 || !strings.Contains(s.problems[0], "address already in use") {
		t.Errorf("problems: %q", s.problems)
	}
	s.mu.Unlock()
	must(t, other.Close())
	eventually(t, "the port is opened", func() bool { return !refused() })
	s.mu.Lock()
	if n := len(s.problems); n < 2 || !strings.HasSuffix(s.problems[n-1], "is fine") {
		t.Errorf("problems: %q", s.problems)
	}
	s.mu.Unlock()
	s.Configure(s.settings, time.Millisecond)
	late := s.dial("tcp", "127.0.0.1")
	read(t, late, 1)
	s.unset(model.TCP)
	if got := readAll(t, late); got != "" {
		t.Errorf("the cut connection got %q", got)
	}
	_, err = io.WriteString(old, "y")
	must(t, err)
	if got := read(t, old, 1); got != "y" {
		t.Errorf("the first connection got %q", got)
	}
}

// TestAddresses: ports that are open move to other addresses, TCP connections go on, and UDP sessions end.
func TestAddresses(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(model.TCP, nil, named(t, "a"))
	s.set(model.UDP, nil, echoUDP(t, "a", 1))
	opens := func(address string) bool {
		c, err := net.Dial("tcp", s.address(address))
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	old := s.dial("tcp", "127.0.0.1")
	read(t, old, 1)
	for _, step := range []struct {
		addresses []netip.Addr
		open      string
	}{
		{[]netip.Addr{netip.MustParseAddr("127.0.0.2")}, "[false true false]"},
		{[]netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}, "[false true true]"},
		{[]netip.Addr{netip.IPv4Unspecified()}, "[true true true]"},
		{nil, "[true true true]"},
	} {
		s.Listen(step.addresses)
		if got := fmt.Sprint([]bool{opens("127.0.0.1"), opens("127.0.0.2"), opens("127.0.0.3")}); got != step.open {
			t.Errorf("%v: open are %s, want %s", step.addresses, got, step.open)
		}
		c := s.dial("udp", "127.0.0.2")
		_, err := io.WriteString(c, "x")
		must(t, err)
		read(t, c, 1)
	}
	_, err := io.WriteString(old, "y")
	must(t, err)
	if got := read(t, old, 1); got != "y" {
		t.Errorf("the first connection got %q", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) > 0 {
		t.Errorf("problems: %q", s.problems)
	}
}

// TestShutdown: connections end by themselves, and those that don't are cut at the limit.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(model.TCP, nil, named(t, "a"))
	s.set(model.UDP, nil, echoUDP(t, "a", 1))
	done, stuck := s.dial("tcp", "127.0.0.1"), s.dial("tcp", "127.0.0.1")
	read(t, done, 1)
	read(t, stuck, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Shutdown(ctx)
		close(ended)
	}()
	eventually(t, "the port is closed", func() bool {
		c, err := net.Dial("tcp", s.address("127.0.0.1"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	_, err := io.WriteString(done, "z")
	must(t, err)
	if got := read(t, done, 1); got != "z" {
		t.Errorf("while it drains: %q", got)
	}
	must(t, done.Close())
	select {
	case <-ended:
		t.Error("it does not wait")
	default:
	}
	cancel()
	<-ended
	if got, err := io.ReadAll(stuck); len(got) > 0 {
		t.Errorf("the cut connection: %q %v", got, err)
	}
	// There may be more, of connections that found the port open.
	eventually(t, "all lines are there", func() bool { return len(s.log.list()) >= 2 })
}
