package stream_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/porttest"
)

// TestReset: a connection that one side resets ends for the other one too.
func TestReset(t *testing.T) {
	t.Parallel()
	s := start(t)
	reset := func(c *net.TCPConn) {
		_ = c.SetLinger(0)
		c.Close()
	}
	ended := make(chan struct{})
	s.set(model.TCP, nil, porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = io.Copy(io.Discard, c)
		close(ended)
	}))
	reset(s.dial("tcp", "127.0.0.1").(*net.TCPConn))
	<-ended
	s.set(model.TCP, nil, porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1))
		reset(c)
	}))
	c := s.dial("tcp", "127.0.0.1")
	_, err := io.WriteString(c, "x")
	must(t, err)
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("the client got %q", got)
	}
	eventually(t, "both are logged", func() bool { return len(s.log.list()) == 2 })
}

// TestEnds: the end of what a side sends is noticed, whether it comes with the last bytes or
// behind them, and each byte before it is passed on, also to a slow reader.
func TestEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	const size = 3 << 20
	s.set(model.TCP, nil, porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) {
		b := make([]byte, 1)
		if _, err := c.Read(b); err != nil {
			return
		}
		if b[0] == 'l' {
			_, _ = c.Write(make([]byte, size))
		}
		_, _ = c.Write(b)
	}))
	var group sync.WaitGroup
	for range 4 {
		short := make([]net.Conn, 200)
		for i := range short {
			short[i] = s.dial("tcp", "127.0.0.1")
		}
		group.Go(func() {
			for _, c := range short {
				if _, err := io.WriteString(c, "s"); err != nil {
					t.Error(err)
				}
				if got, err := io.ReadAll(c); err != nil || string(got) != "s" {
					t.Errorf("the client got %q: %v", got, err)
				}
			}
		})
		long := s.dial("tcp", "127.0.0.1")
		group.Go(func() {
			_, err := io.WriteString(long, "l")
			n, b := 0, make([]byte, 1000)
			for err == nil {
				var m int
				m, err = long.Read(b)
				n += m
			}
			if !errors.Is(err, io.EOF) || n != size+1 {
				t.Errorf("the slow reader got %d bytes: %v", n, err)
			}
		})
	}
	group.Wait()
}
