package stream_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
)

// TestForsakenSession: a client that an endpoint owes an answer goes to another one when the
// endpoint is removed, even if it never stops sending: the pod may have ended without a word.
func TestForsakenSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	s.set(model.UDP, nil, silent.LocalAddr().(*net.UDPAddr).AddrPort())
	c := s.dial("udp", "127.0.0.1")
	_, err = c.Write([]byte("lost"))
	must(t, err)
	_, _, err = silent.ReadFromUDPAddrPort(make([]byte, 9))
	must(t, err)

	live := echoUDP(t, "a", 1)
	s.set(model.UDP, nil, live)
	eventually(t, "another endpoint answers", func() bool { return answeredSoon(t, c) })
}

// TestAnsweringSession: an endpoint that was removed keeps its session as long as it answers.
func TestAnsweringSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.configure(func(m *model.StreamSettings) { m.Responses = 1000 })
	s.set(model.UDP, nil, echoUDP(t, "old", 1))
	c := s.dial("udp", "127.0.0.1")
	exchange(t, c, "x")
	s.set(model.UDP, nil, echoUDP(t, "new", 1))
	for range 10 {
		if got := exchange(t, c, "x"); got != "old0 x" {
			t.Fatalf("the answer is %q", got)
		}
	}
}

// answeredSoon sends a datagram, and reports whether an answer comes soon.
func answeredSoon(t *testing.T, c net.Conn) bool {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	_, err := c.Write([]byte("x"))
	must(t, err)
	_, err = c.Read(make([]byte, 100))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}

// TestEndpointWithoutRoute: an endpoint to which no socket can be connected takes no datagram
// from others.
func TestEndpointWithoutRoute(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(model.UDP, nil, netip.MustParseAddrPort("255.255.255.255:9"), echoUDP(t, "a", 1))
	c := s.dial("udp", "127.0.0.1")
	must(t, c.SetReadDeadline(time.Now().Add(timeout)))
	for range 10 {
		if got := exchange(t, c, "x"); got != "a0 x" {
			t.Fatalf("the answer is %q", got)
		}
	}
}
