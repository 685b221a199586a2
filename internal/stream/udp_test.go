package stream_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model"
)

func itoa(n int) string { return strconv.Itoa(n) }

// echoUDP answers each datagram by its name and the datagram, several times.
func echoUDP(t testing.TB, name string, times int) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			for i := range times {
				_, _ = c.WriteToUDPAddrPort(fmt.Appendf(nil, "%s%d %s", name, i, b[:n]), from)
			}
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func exchange(t testing.TB, c net.Conn, text string) string {
	t.Helper()
	_, err := c.Write([]byte(text))
	must(t, err)
	return answer(t, c)
}

func answer(t testing.TB, c net.Conn) string {
	t.Helper()
	b := make([]byte, 64<<10)
	n, err := c.Read(b)
	must(t, err)
	return string(b[:n])
}

// TestDatagrams: datagrams of all sizes are answered, in both families, and sessions end
// with their answers: the next datagram goes to the next endpoint.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.format("$protocol $status $bytes_received $bytes_sent $remote_addr $server_addr")
	s.set(model.UDP, nil, echoUDP(t, "a", 1), echoUDP(t, "b", 1))
	sizes := []int{0, 1, 64, 1400, 60000}
	for i, size := range sizes {
		ip := []string{"127.0.0.1", "::1"}[i%2]
		sent := strings.Repeat("x", size)
		got := exchange(t, s.dial("udp", ip), sent)
		if _, text, _ := strings.Cut(got, " "); text != sent {
			t.Errorf("of %d bytes %d came back", size, len(text))
		}
		eventually(t, "the line is logged", func() bool { return len(s.log.list()) == i+1 })
		if line, want := s.log.list()[i], fmt.Sprintf("UDP 200 %d %d %s %s", size, size+3, ip, ip); line != want {
			t.Errorf("logged %q, want %q", line, want)
		}
	}
	c := s.dial("udp", "127.0.0.1")
	count := map[string]int{}
	for i := range 10 {
		count[exchange(t, c, "x")[:1]]++
		eventually(t, "the session has ended", func() bool { return len(s.log.list()) == len(sizes)+i+1 })
	}
	if count["a"] != 5 || count["b"] != 5 {
		t.Errorf("of 10 datagrams: %v", count)
	}
}

// TestAnswerFrom: the answer comes from the address that the client sent to.
func TestAnswerFrom(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(model.UDP, nil, echoUDP(t, "a", 1))
	// A connected socket takes nothing from elsewhere.
	for _, ip := range []string{"127.0.0.2", "127.9.8.7"} {
		if got := exchange(t, s.dial("udp", ip), ip); got != "a0 "+ip {
			t.Errorf("%s answers %q", ip, got)
		}
	}
}

// TestResponses: a session lasts as many answers as are expected, and ends when none comes.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.format("$bytes_received $bytes_sent")
	s.configure(func(m *model.StreamSettings) { m.Responses = 3 })
	s.set(model.UDP, nil, echoUDP(t, "a", 3))
	c := s.dial("udp", "127.0.0.1")
	for i, got := range []string{exchange(t, c, "x"), answer(t, c), answer(t, c)} {
		if got != fmt.Sprintf("a%d x", i) {
			t.Errorf("answer %d is %q", i, got)
		}
	}
	eventually(t, "the session ends", func() bool { return len(s.log.list()) == 1 })
	s.configure(func(m *model.StreamSettings) { m.Responses = 4; m.Idle = time.Second })
	exchange(t, c, "x")
	eventually(t, "the session ends without its last answer", func() bool { return len(s.log.list()) == 2 })
	s.configure(func(m *model.StreamSettings) { m.Responses = 0; m.Idle = time.Hour })
	_, err := c.Write([]byte("log"))
	must(t, err)
	eventually(t, "a session without answers ends", func() bool { return len(s.log.list()) == 3 })
	want := []string{"1 12", "1 12", "3 0"}
	for i, line := range s.log.list() {
		if line != want[i] {
			t.Errorf("session %d: %q, want %q", i, line, want[i])
		}
	}
}

// TestDeadUDP: an endpoint whose port is closed is noticed, and the others are asked.
func TestDeadUDP(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.format("$status")
	s.set(model.UDP, nil, dead(t), echoUDP(t, "a", 1))
	c := s.dial("udp", "127.0.0.1")
	eventually(t, "the dead endpoint was asked", func() bool {
		_, err := c.Write([]byte("x"))
		must(t, err)
		return strings.Contains(strings.Join(s.log.list(), " "), "502")
	})
	other := s.dial("udp", "127.0.0.1")
	for i := range 5 {
		if got := exchange(t, other, itoa(i)); got != "a0 "+itoa(i) {
			t.Errorf("%q answers", got)
		}
		n := len(s.log.list())
		eventually(t, "the session has ended", func() bool { return len(s.log.list()) >= n })
	}
}

// TestUDPReopened: a port that is closed and opened again serves, though a session of it
// still waits for an answer, and gets it.
func TestUDPReopened(t *testing.T) {
	t.Parallel()
	s := start(t)
	slow, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer slow.Close()
	s.set(model.UDP, nil, slow.LocalAddr().(*net.UDPAddr).AddrPort())
	waits := s.dial("udp", "127.0.0.1")
	_, err = waits.Write([]byte("first"))
	must(t, err)
	b := make([]byte, 100)
	n, from, err := slow.ReadFromUDPAddrPort(b)
	must(t, err)
	s.unset(model.UDP)
	s.set(model.UDP, nil, echoUDP(t, "a", 1))
	if got := exchange(t, s.dial("udp", "127.0.0.1"), "x"); got != "a0 x" {
		t.Errorf("the reopened port answers %q", got)
	}
	_, err = slow.WriteToUDPAddrPort(b[:n], from)
	must(t, err)
	if got := answer(t, waits); got != "first" {
		t.Errorf("the old session got %q", got)
	}
	s.unset(model.UDP)
	eventually(t, "the port is free", func() bool {
		c, err := net.ListenPacket("udp", s.address("127.0.0.1"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestLateAnswers: answers that come when the session has ended reach no client of a later one,
// unless the kernel happens to give that the same port.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(model.UDP, nil, echoUDP(t, "a", 5))
	const clients, each, most = 20, 100, 20
	var foreign atomic.Int64
	var group sync.WaitGroup
	for i := range clients {
		c := s.dial("udp", "127.0.0.1")
		group.Go(func() {
			b := make([]byte, 100)
			for j := range each {
				text := fmt.Sprintf("%d of %d", j, i)
				if _, err := c.Write([]byte(text)); err != nil {
					t.Error(err)
					return
				}
				n, err := c.Read(b)
				if err != nil {
					t.Error(err)
					return
				}
				if string(b[3:n]) != text {
					foreign.Add(1)
				}
			}
		})
	}
	group.Wait()
	if n := foreign.Load(); n > most {
		t.Errorf("%d of %d answers are those of others", n, clients*each)
	}
}

// TestNoLastAnswer: at the end, a session whose answer does not come is not waited for as long
// as connections are.
func TestNoLastAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer silent.Close()
	s.set(model.UDP, nil, silent.LocalAddr().(*net.UDPAddr).AddrPort())
	_, err = s.dial("udp", "127.0.0.1").Write([]byte("hello"))
	must(t, err)
	_, _, err = silent.ReadFromUDPAddrPort(make([]byte, 10))
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.Shutdown(ctx)
	if err := ctx.Err(); err != nil {
		t.Error("it waits for the answer")
	}
}
