package stream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/stream/logline"
	"github.com/headgate/headgate/internal/stream/proxyheader"
	"github.com/headgate/headgate/internal/stream/socket"
)

// The time that a connection to an endpoint may take: as in NGINX where there is no other
// endpoint to try, and less where there is one.
const (
	ConnectTimeout     = 60 * time.Second
	ConnectTimeoutNext = 5 * time.Second
)

// listenTCP opens a port at addresses, without any of IPv4 and, where the machine has it, IPv6.
func (l *listening) listenTCP(addresses []netip.Addr) error {
	config := net.ListenConfig{KeepAlive: -1}
	// Connections are spliced.
	config.SetMultipathTCP(false)
	port := strconv.Itoa(int(l.stream.Load().Port))
	for _, at := range places(addresses) {
		listener, err := config.Listen(context.Background(), "tcp"+at.family, net.JoinHostPort(at.host, port))
		if err != nil {
			for _, opened := range l.tcp {
				opened.Close()
			}
			return err
		}
		l.tcp = append(l.tcp, listener)
	}
	for _, listener := range l.tcp {
		go l.accept(listener.(*net.TCPListener), (*connection).serve)
	}
	return nil
}

// A place is a host to listen on, and the end of the name of its network.
type place struct{ host, family string }

// places are those of addresses. Without any it is all of both families, with one socket.
func places(addresses []netip.Addr) []place {
	if len(addresses) == 0 {
		return []place{{}}
	}
	list := make([]place, len(addresses))
	for i, a := range addresses {
		list[i] = place{a.String(), "4"}
		if a.Is6() {
			list[i].family = "6"
		}
	}
	return list
}

// A dialed connection leads to an endpoint, or to NGINX.
type dialed interface {
	net.Conn
	syscall.Conn
}

// A connection is one of a client.
type connection struct {
	of     *listening
	client *net.TCPConn
	began  time.Time
	// end is the context of dialing.
	end      context.CancelFunc
	isCut    bool
	endpoint dialed
	// relay has both connections, once it is set.
	relay *socket.Relay
}

// Statuses of connections and sessions, as in NGINX.
const (
	statusOK         = 200
	statusBadRequest = 400
	statusFailed     = 500
	statusBadGateway = 502
)

// serve connects the client to an endpoint, and leaves the rest to a loop.
func (c *connection) serve() {
	l := c.of
	now := l.server.current.Load()
	r := &logline.Record{ID: l.counters.connection(), Began: c.began, Stream: l.stream.Load()}
	r.Client, r.Local = proxyheader.AddressOf(c.client.RemoteAddr()), proxyheader.AddressOf(c.client.LocalAddr())
	endpoint := c.open(now, r)
	if endpoint != nil && c.startRelay(endpoint, relaying{idle: now.Idle, received: r.Received, done: c.ends(now, r)}) {
		return
	}
	c.client.Close()
	if endpoint != nil {
		endpoint.Close()
	}
	l.finish(now, r)
	l.leave(c)
}

// open reads what the client must send first, connects to an endpoint, and sends what that
// must get first. It returns nil if the connection ends, for which the record has the status.
func (c *connection) open(now *current, r *logline.Record) *net.TCPConn {
	var rest []byte
	from, to := r.Client, r.Local
	if r.Stream.ProxyIn {
		var err error
		var source, destination netip.AddrPort
		if source, destination, rest, err = proxyheader.Read(c.client, proxyheader.Timeout); err != nil {
			r.Status = statusBadRequest
			return nil
		}
		if source.IsValid() && destination.IsValid() {
			from, to, r.Proxied = source, destination, r.Client
			r.Client = source
		}
	}
	endpoint := c.connect(now, r)
	if r.Status = statusBadGateway; endpoint == nil {
		return nil
	}
	r.Status = statusOK
	var first []byte
	if r.Stream.ProxyOut {
		first = proxyheader.Format(from, to)
	}
	var err error
	if r.Received, err = c.sendFirst(endpoint, now.Idle, first, rest); err != nil {
		endpoint.Close()
		return nil
	}
	return endpoint
}

// ends is what happens when a relay has ended.
func (c *connection) ends(now *current, r *logline.Record) func(received, sent int64) {
	return func(received, sent int64) {
		r.Received, r.Sent = received, sent
		c.of.finish(now, r)
		c.of.leave(c)
	}
}

// sendFirst sends the header of the PROXY protocol, and what the client sent behind its own.
// It returns how much of the latter.
func (c *connection) sendFirst(endpoint dialed, limit time.Duration, header, rest []byte) (received int64, err error) {
	if len(header)+len(rest) == 0 {
		return 0, nil
	}
	if err := endpoint.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	n, err := endpoint.Write(append(header, rest...))
	received = int64(max(0, n-len(header)))
	c.of.counters.passed.Received.Add(received)
	return received, err
}

// relaying is how connections are relayed: see relay.
type relaying struct {
	idle, linger time.Duration
	// received is the number of bytes of the client that the endpoint has already.
	received int64
	done     func(received, sent int64)
}

// startRelay hands both connections to a loop, which ends them. It is false if it can't: the
// connections are then closed.
func (c *connection) startRelay(endpoint dialed, how relaying) bool {
	client, err := socket.Detach(c.client)
	if err != nil {
		return false
	}
	upstream, err := socket.Detach(endpoint)
	if err != nil {
		socket.Close(client)
		return false
	}
	l := c.of
	passes := socket.NewRelay(l.server.loops.Next(), client, upstream, how.received, how.idle, &l.counters.passed)
	passes.Linger = how.linger
	passes.Done = how.done
	l.mu.Lock()
	c.client, c.endpoint, c.relay = nil, nil, passes
	isCut := c.isCut
	l.mu.Unlock()
	if isCut {
		passes.Cut()
	} else {
		passes.Start()
	}
	return true
}

// connect connects to an endpoint, or to another one if that fails.
func (c *connection) connect(now *current, r *logline.Record) *net.TCPConn {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !c.mayDial(cancel) {
		return nil
	}
	table := &c.of.table
	most := table.Size()
	switch {
	case !now.NextEndpoint:
		most = 1
	case now.Tries > 0:
		most = min(most, now.Tries)
	}
	began := time.Now()
	var tried []netip.AddrPort
	for len(tried) < most && (now.NextTimeout == 0 || len(tried) == 0 || time.Since(began) < now.NextTimeout) {
		endpoint, ok := table.Next(tried)
		if !ok {
			break
		}
		tried = append(tried, endpoint)
		limit := ConnectTimeout
		if len(tried) < most {
			limit = ConnectTimeoutNext
		}
		conn := c.dial(ctx, endpoint, limit, r)
		if conn != nil || ctx.Err() != nil {
			return conn
		}
	}
	return nil
}

// dial connects to one endpoint.
func (c *connection) dial(ctx context.Context, endpoint netip.AddrPort, limit time.Duration, r *logline.Record) *net.TCPConn {
	dialer := net.Dialer{Timeout: limit, KeepAlive: -1}
	began := time.Now()
	conn, err := dialer.DialContext(ctx, "tcp", endpoint.String())
	r.Tried(endpoint, time.Since(began), err == nil)
	if err != nil {
		if ctx.Err() == nil && !isLocal(err) {
			c.of.table.Failed(endpoint)
		}
		return nil
	}
	c.of.table.Worked(endpoint)
	tcp := conn.(*net.TCPConn)
	if !c.connected(tcp) {
		tcp.Close()
		return nil
	}
	return tcp
}

// isLocal reports whether connecting failed because of this machine and not because of the
// endpoint.
func isLocal(err error) bool {
	return isTemporary(err) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// mayDial, connected and cut agree on what is to be ended at once.
func (c *connection) mayDial(cancel context.CancelFunc) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.end = cancel
	return !c.isCut
}

func (c *connection) connected(endpoint dialed) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.endpoint = endpoint
	return !c.isCut
}

func (c *connection) cut() {
	c.of.mu.Lock()
	c.isCut = true
	passes := c.relay
	if passes == nil {
		c.client.Close()
		if c.end != nil {
			c.end()
		}
		if c.endpoint != nil {
			c.endpoint.Close()
		}
	}
	c.of.mu.Unlock()
	if passes != nil {
		// It locks the port when it ends.
		passes.Cut()
	}
}
