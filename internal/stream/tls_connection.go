package stream

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream/clienthello"
	"github.com/headgate/headgate/internal/stream/logline"
	"github.com/headgate/headgate/internal/stream/proxyheader"
	"github.com/headgate/headgate/internal/stream/socket"
)

// HelloTimeout is how long a client may take to send its ClientHello.
const HelloTimeout = 30 * time.Second

// nginxTimeout is how long a connection waits for NGINX, which may be about to start.
const nginxTimeout = 30 * time.Second

// The pauses between attempts to connect to NGINX.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = 200 * time.Millisecond
)

// lingerTime is how long a client may be idle when NGINX has ended the connection: until it takes
// what is left, and ends its own direction. NGINX itself waits for 30 s at most.
const lingerTime = 35 * time.Second

// keepAlive finds out which clients and endpoints are gone: nothing else ends a connection
// that is idle.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// An arrival is what is known of a connection before it is passed on.
type arrival struct {
	// client and local are its ends, and proxied is who said so, if not the client itself.
	client, local, proxied netip.AddrPort
	// name is empty if there is none that can be read, and nameless is set where a ClientHello that
	// can be read has none.
	name     string
	nameless bool
	// first is what the client has sent. It may be in buffer, which is to be given back.
	first  []byte
	buffer *[socket.BufferSize]byte
	// buffers are those that no connection has.
	buffers *sync.Pool
}

// free gives the buffer back once first was sent.
func (a *arrival) free() {
	if a.buffer != nil {
		a.buffers.Put(a.buffer)
	}
	a.first, a.buffer = nil, nil
}

// serve reads the name that a client asks for, and passes the connection on.
func (t *TLS) serve(c *connection) {
	a := arrival{buffers: &t.buffers}
	defer a.free()
	status := statusBadRequest
	if err := t.arrive(c, &a); err == nil {
		if status = t.forward(c, &a); status == statusOK {
			return
		}
	}
	c.client.Close()
	t.front.counters.end(status)
	t.front.leave(c)
}

// forward passes the connection through, or hands it to NGINX. With another status than 200,
// the connection ends.
func (t *TLS) forward(c *connection, a *arrival) (status int) {
	host := t.host(a)
	if host == nil {
		return t.hand(c, a)
	}
	passed := &connection{of: host, client: c.client, began: c.began}
	err := host.enter(passed)
	switch {
	case err == nil:
		t.front.leave(c)
		passed.servePassed(a)
		return statusOK
	case errors.Is(err, errStopped) && t.host(a) == nil:
		// NGINX serves the host from now on.
		return t.hand(c, a)
	}
	t.front.counters.refused.Add(1)
	return statusBadRequest
}

// arrive reads the header of a load balancer, if there is to be one, and the ClientHello.
func (t *TLS) arrive(c *connection, a *arrival) error {
	place, closed := t.waiting.enter(c.client)
	defer t.waiting.leave(place)
	if closed {
		t.front.counters.refused.Add(1)
	}
	a.client, a.local = proxyheader.AddressOf(c.client.RemoteAddr()), proxyheader.AddressOf(c.client.LocalAddr())
	if settings := t.settings.Load(); settings.ProxyIn {
		from, to, rest, err := proxyheader.Read(c.client, headerTimeout(settings))
		if err != nil {
			t.logHeader(a.client, err)
			return err
		}
		if from.IsValid() && to.IsValid() && believes(settings, a.client.Addr()) {
			a.client, a.local, a.proxied = from, to, a.client
		}
		a.first = rest
	}
	if err := c.client.SetReadDeadline(c.began.Add(HelloTimeout)); err != nil {
		return err
	}
	return a.readName(c.client)
}

// logHeader logs that a connection has no valid header. The load balancer and use-proxy-protocol
// may disagree, and then no connection is served.
func (t *TLS) logHeader(from netip.AddrPort, err error) {
	if errors.Is(err, proxyheader.ErrNothingSent) {
		return
	}
	if leftOut, ok := t.badHeaders.pass(time.Now()); ok {
		t.server.settings.Log.Warn("a connection without a valid header of the PROXY protocol, which use-proxy-protocol requires, was closed",
			"from", from, "error", err, "more before", leftOut)
	}
}

// believes reports whether the header of a load balancer counts.
func believes(settings *model.TLSPassthrough, address netip.Addr) bool {
	for _, network := range settings.Trusted {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// readName reads until the name is known, or it is known that there is none. A connection
// that sends nothing holds no buffer, and one that has sent a part holds that part.
func (a *arrival) readName(client *net.TCPConn) error {
	raw, err := client.SyscallConn()
	if err != nil {
		return err
	}
	var hello clienthello.Reader
	for {
		if len(a.first) > 0 {
			var err error
			if a.name, err = hello.Name(a.first); !errors.Is(err, clienthello.ErrMore) {
				a.nameless = errors.Is(err, clienthello.ErrNoName)
				return nil
			}
		}
		if err := a.more(raw); err != nil {
			return err
		}
	}
}

// more waits for bytes and reads what there is.
func (a *arrival) more(raw syscall.RawConn) error {
	var n int
	var readErr error
	var b *[socket.BufferSize]byte
	if a.buffer != nil {
		// The buffer is for the first read, which has all of most messages.
		a.first = append(make([]byte, 0, 2*len(a.first)), a.first...)
		a.buffers.Put(a.buffer)
		a.buffer = nil
	}
	err := raw.Read(func(fd uintptr) bool {
		b = a.buffers.Get().(*[socket.BufferSize]byte)
		if n, readErr = socket.Receive(int(fd), b[:socket.BufferSize-len(a.first)]); n <= 0 {
			a.buffers.Put(b)
		}
		return !errors.Is(readErr, syscall.EAGAIN)
	})
	switch {
	case err != nil:
		return err
	case readErr != nil:
		return readErr
	case n == 0:
		return io.EOF
	case len(a.first) == 0:
		a.buffer, a.first = b, b[:n]
	default:
		a.first = append(a.first, b[:n]...)
		a.buffers.Put(b)
	}
	return nil
}

// servePassed passes the connection through to an endpoint.
func (c *connection) servePassed(a *arrival) {
	l := c.of
	now := l.server.current.Load()
	r := &logline.Record{
		ID: l.counters.connection(), Began: c.began, Stream: l.stream.Load(), Client: a.client, Local: a.local, Proxied: a.proxied,
	}
	if c.passThrough(now, r, a) {
		return
	}
	c.client.Close()
	l.finish(now, r)
	l.leave(c)
}

// passThrough reports false if the connection ends.
func (c *connection) passThrough(now *current, r *logline.Record, a *arrival) bool {
	endpoint := c.connect(now, r)
	if r.Status = statusBadGateway; endpoint == nil {
		return false
	}
	r.Status = statusOK
	var err error
	if err = errors.Join(c.client.SetKeepAliveConfig(keepAlive), endpoint.SetKeepAliveConfig(keepAlive)); err == nil {
		r.Received, err = c.sendFirst(endpoint, nginxTimeout, nil, a.first)
	}
	if err != nil || !c.startRelay(endpoint, relaying{linger: now.Idle, received: r.Received, done: c.ends(now, r)}) {
		endpoint.Close()
		return false
	}
	return true
}

// hand hands the connection to NGINX. It ends with another status than 200 only before.
func (t *TLS) hand(c *connection, a *arrival) (status int) {
	nginx := t.dialNGINX(c)
	if nginx == nil {
		return statusBadGateway
	}
	received, err := c.sendFirst(nginx, nginxTimeout, proxyheader.Format(a.client, a.local), a.first)
	ended := func(_, _ int64) {
		t.front.counters.end(statusOK)
		t.front.leave(c)
	}
	if err != nil || !c.startRelay(nginx, relaying{linger: lingerTime, received: received, done: ended}) {
		nginx.Close()
		return statusFailed
	}
	return statusOK
}

// dialNGINX connects to NGINX. While that does not run, or has a full queue, the connection
// waits.
func (t *TLS) dialNGINX(c *connection) *net.UnixConn {
	for pause, began := firstPause, time.Now(); ; pause = min(2*pause, maxPause) {
		nginx, err := net.DialUnix("unix", nil, t.nginx)
		if err == nil {
			if !c.connected(nginx) {
				nginx.Close()
				return nil
			}
			return nginx
		}
		if time.Since(began) > nginxTimeout {
			t.server.settings.Log.Warn("NGINX takes no connection for https", "error", err)
			return nil
		}
		select {
		case <-time.After(pause):
		case <-t.stopped:
			return nil
		}
	}
}
