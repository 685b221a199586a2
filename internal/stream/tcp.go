package stream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// The time that a connection to an endpoint may take: as in NGINX where there is no other
// endpoint to try, and less where there is one.
const (
	ConnectTimeout     = 60 * time.Second
	ConnectTimeoutNext = 5 * time.Second
)

// listenTCP opens a port of IPv4 and, where the machine has it, IPv6.
func (l *listening) listenTCP(address string) error {
	config := net.ListenConfig{KeepAlive: -1}
	// Connections are spliced.
	config.SetMultipathTCP(false)
	at := net.JoinHostPort(address, strconv.Itoa(int(l.stream.Load().Port)))
	listener, err := config.Listen(context.Background(), "tcp", at)
	if err != nil {
		return err
	}
	l.tcp = listener
	go l.accept(listener.(*net.TCPListener))
	return nil
}

// acceptPause is the time until accepting is tried again after it failed.
const acceptPause = 50 * time.Millisecond

func (l *listening) accept(listener *net.TCPListener) {
	for {
		conn, err := listener.AcceptTCP()
		switch {
		case err == nil:
		case isTemporary(err):
			l.counters.refused.Add(1)
			time.Sleep(acceptPause)
			continue
		default:
			return
		}
		c := &connection{of: l, client: conn, began: time.Now()}
		if err := l.enter(c); err != nil {
			l.counters.refused.Add(1)
			conn.Close()
			continue
		}
		go c.serve()
	}
}

// A connection is one of a client.
type connection struct {
	of     *listening
	client *net.TCPConn
	began  time.Time
	// end is the context of dialing.
	end      context.CancelFunc
	isCut    bool
	endpoint *net.TCPConn
}

// Statuses of connections and sessions, as in NGINX.
const (
	statusOK         = 200
	statusBadRequest = 400
	statusFailed     = 500
	statusBadGateway = 502
)

func (c *connection) serve() {
	l := c.of
	now := l.server.current.Load()
	r := record{id: l.counters.connection(), began: c.began, stream: l.stream.Load()}
	r.client, r.local = addressOf(c.client.RemoteAddr()), addressOf(c.client.LocalAddr())
	r.status = c.pass(now, &r)
	c.client.Close()
	l.leave(c)
	l.finish(now, &r)
}

// pass relays the connection to an endpoint, and returns the status.
func (c *connection) pass(now *current, r *record) int {
	var rest []byte
	from, to := r.client, r.local
	if r.stream.ProxyIn {
		var err error
		var source, destination netip.AddrPort
		if source, destination, rest, err = readHeader(c.client, HeaderTimeout); err != nil {
			return statusBadRequest
		}
		if source.IsValid() && destination.IsValid() {
			from, to, r.proxied = source, destination, r.client
			r.client = source
		}
	}
	endpoint := c.connect(now, r)
	if endpoint == nil {
		return statusBadGateway
	}
	defer endpoint.Close()
	relay := newRelay(c.client, endpoint, now.Idle, &c.of.counters.received, &c.of.counters.sent)
	defer func() {
		r.received, r.sent = relay.received.bytes.Load(), relay.sent.bytes.Load()
	}()
	var first []byte
	if r.stream.ProxyOut {
		first = header(from, to)
	}
	if !c.sendFirst(relay, now.Idle, first, rest) {
		return statusOK
	}
	relay.run()
	return statusOK
}

// sendFirst sends the header of the PROXY protocol, and what the client sent behind its own.
func (c *connection) sendFirst(r *relay, limit time.Duration, header, rest []byte) bool {
	if len(header)+len(rest) == 0 {
		return true
	}
	if err := r.endpoint.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return false
	}
	n, err := r.endpoint.Write(append(header, rest...))
	r.received.add(max(0, n-len(header)))
	return err == nil
}

// connect connects to an endpoint, or to another one if that fails.
func (c *connection) connect(now *current, r *record) *net.TCPConn {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !c.mayDial(cancel) {
		return nil
	}
	table := &c.of.table
	most := table.size()
	switch {
	case !now.NextEndpoint:
		most = 1
	case now.Tries > 0:
		most = min(most, now.Tries)
	}
	began := time.Now()
	var tried []netip.AddrPort
	for len(tried) < most && (now.NextTimeout == 0 || len(tried) == 0 || time.Since(began) < now.NextTimeout) {
		endpoint, ok := table.next(tried)
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
func (c *connection) dial(ctx context.Context, endpoint netip.AddrPort, limit time.Duration, r *record) *net.TCPConn {
	dialer := net.Dialer{Timeout: limit, KeepAlive: -1}
	began := time.Now()
	conn, err := dialer.DialContext(ctx, "tcp", endpoint.String())
	r.tried(endpoint, time.Since(began), err == nil)
	if err != nil {
		if ctx.Err() == nil && !isLocal(err) {
			c.of.table.failed(endpoint)
		}
		return nil
	}
	c.of.table.worked(endpoint)
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

func (c *connection) connected(endpoint *net.TCPConn) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.endpoint = endpoint
	return !c.isCut
}

func (c *connection) cut() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.isCut = true
	c.client.Close()
	if c.end != nil {
		c.end()
	}
	if c.endpoint != nil {
		c.endpoint.Close()
	}
}
