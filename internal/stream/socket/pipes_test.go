package socket

import (
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/porttest"
)

// TestPipes: there are no more than the limit, which leaves files for all else, and what is
// given back can be taken again.
func TestPipes(t *testing.T) {
	t.Parallel()
	p := newPipes()
	var all []*pipe
	for range MaxPipes {
		one := p.take()
		if one == nil {
			t.Fatalf("pipe %d is refused", len(all)+1)
		}
		all = append(all, one)
	}
	for range 3 {
		if p.take() != nil {
			t.Error("there is one more than the limit")
		}
	}
	p.give(all[0])
	if again := p.take(); again != all[0] {
		t.Error("one that was given back is not taken again")
	}
	// One with bytes in it is not kept.
	all[0].n = 1
	for _, one := range all {
		p.give(one)
	}
	if n := p.open.Load(); n != freePipes || len(p.free) != freePipes {
		t.Errorf("%d pipes are open and %d kept, want %d", n, len(p.free), freePipes)
	}
	p.closeFree()
	if n := p.open.Load(); n != 0 {
		t.Errorf("%d pipes are left", n)
	}
}

// TestConnectionsWithoutPipes: more connections that clients don't read than there may be pipes
// have all their bytes come.
func TestConnectionsWithoutPipes(t *testing.T) {
	t.Parallel()
	const connections = MaxPipes + 20
	sent := make([]byte, 4<<20)
	for i := range sent {
		sent[i] = byte(i >> 8)
	}
	want := sha256.Sum256(sent)
	endpoint := porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) { _, _ = c.Write(sent) })
	var loops Loops
	if err := loops.Open(); err != nil {
		t.Fatal(err)
	}
	var relays sync.WaitGroup
	defer loops.Close()
	address := porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) { relay(t, &loops, c, endpoint, &relays) })
	var all []*net.TCPConn
	for range connections {
		c, err := net.Dial("tcp", address.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// The kernel keeps little for it.
		tcp := c.(*net.TCPConn)
		if err := tcp.SetReadBuffer(16 << 10); err != nil {
			t.Fatal(err)
		}
		all = append(all, tcp)
	}
	open := &loops.pipes.open
	waitFor(t, "all pipes are in use", func() bool { return open.Load() >= MaxPipes })
	var readers sync.WaitGroup
	for _, c := range all {
		readers.Go(func() {
			_ = c.SetReadBuffer(1 << 20)
			sum := sha256.New()
			if _, err := io.Copy(sum, c); err != nil || [sha256.Size]byte(sum.Sum(nil)) != want {
				t.Errorf("other bytes came, %v", err)
			}
			// Each loop counts one before it is refused.
			if n := open.Load(); n > MaxPipes+int64(len(loops.all)) {
				t.Errorf("%d pipes", n)
			}
		})
	}
	readers.Wait()
	for _, c := range all {
		c.Close()
	}
	relays.Wait()
	if n := open.Load(); n > freePipes {
		t.Errorf("%d pipes are left", n)
	}
}

// relay relays a connection to an endpoint, and returns when it has ended.
func relay(t *testing.T, loops *Loops, client *net.TCPConn, endpoint netip.AddrPort, relays *sync.WaitGroup) {
	relays.Add(1)
	defer relays.Done()
	upstream, err := net.Dial("tcp", endpoint.String())
	if err != nil {
		t.Error(err)
		return
	}
	one, err := Detach(client)
	other, err2 := Detach(upstream.(*net.TCPConn))
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
		return
	}
	ended := make(chan struct{})
	r := NewRelay(loops.Next(), one, other, 0, 0, &Totals{})
	r.Done = func(received, sent int64) { close(ended) }
	r.Start()
	<-ended
}

func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
