package stream

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxDatagram is the size of the largest datagram.
const maxDatagram = 64 << 10

var datagrams = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// A udpPort is an open UDP port with its sessions.
type udpPort struct {
	of    *listening
	conn  *net.UDPConn
	local pktinfo
	port  uint16

	mu       sync.Mutex
	sessions map[peer]*session
}

// A peer is a client, and the address of this machine that it sends to.
type peer struct {
	client netip.AddrPort
	local  netip.Addr
}

// listenUDP opens a port of IPv4 and, where the machine has it, IPv6.
func (l *listening) listenUDP(address string) error {
	stream := l.stream.Load()
	at := &net.UDPAddr{IP: net.ParseIP(address), Port: int(stream.Port)}
	conn, err := net.ListenUDP("udp", at)
	if err != nil {
		return err
	}
	u := &udpPort{of: l, conn: conn, port: stream.Port, sessions: map[peer]*session{}}
	if u.local, err = newPktinfo(conn); err != nil {
		conn.Close()
		return err
	}
	l.udp = u
	go u.receive()
	return nil
}

func (u *udpPort) close() { u.conn.Close() }

// receive passes on the datagrams of clients, until the port is closed.
func (u *udpPort) receive() {
	buffer := make([]byte, maxDatagram)
	control := make([]byte, controlSize)
	for {
		n, m, _, from, err := u.conn.ReadMsgUDPAddrPort(buffer, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// An error of a single datagram, such as one that could not be sent.
			continue
		}
		to := peer{client: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), local: u.local.destination(control[:m])}
		u.pass(to, buffer[:n])
	}
}

// pass sends a client's datagram to the endpoint of its session, or of a new one.
func (u *udpPort) pass(from peer, datagram []byte) {
	u.mu.Lock()
	s := u.sessions[from]
	u.mu.Unlock()
	if s != nil && s.request() {
		s.send(datagram)
		return
	}
	s = u.begin(from)
	if s == nil {
		u.of.counters.refused.Add(1)
		return
	}
	s.send(datagram)
	if s.now.Responses == 0 {
		s.finish(statusOK)
		return
	}
	go s.receive()
}

// begin begins a session, or returns nil if there is no room for one.
func (u *udpPort) begin(from peer) *session {
	l := u.of
	s := &session{port: u, peer: from, now: l.server.current.Load(), requests: 1}
	if err := l.enter(s); err != nil {
		if errors.Is(err, errFull) {
			u.evict()
		}
		return nil
	}
	s.record = record{
		id: l.counters.connection(), began: time.Now(), stream: l.stream.Load(), client: from.client, local: netip.AddrPortFrom(from.local, u.port),
	}
	if !s.dial() {
		l.leave(s)
		s.record.status = statusFailed
		l.finish(s.now, &s.record)
		return nil
	}
	s.reply = u.local.reply(from.local)
	u.mu.Lock()
	u.sessions[from] = s
	u.mu.Unlock()
	return s
}

// dial makes the socket to an endpoint.
func (s *session) dial() bool {
	endpoint, ok := s.port.of.table.next(nil)
	if !ok {
		return false
	}
	conn, raw, err := dialUDP(endpoint)
	s.record.tried(endpoint, 0, err == nil)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoint, s.conn, s.raw = endpoint, conn, raw
	return true
}

func dialUDP(endpoint netip.AddrPort) (*net.UDPConn, syscall.RawConn, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(endpoint))
	if err != nil {
		return nil, nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}

// looked is among how many sessions evict looks for the one to end.
const looked = 8

// evict ends the session that was idle for longest, of a few. So clients that send from
// ever new addresses don't keep others out.
func (u *udpPort) evict() {
	u.mu.Lock()
	var oldest *session
	n := 0
	for _, s := range u.sessions {
		if oldest == nil || s.active.Load() < oldest.active.Load() {
			oldest = s
		}
		if n++; n == looked {
			break
		}
	}
	u.mu.Unlock()
	if oldest != nil {
		oldest.cut()
	}
}

// A session is what a client sends, and what the endpoint answers, until there are as many
// answers as are expected, or none comes for some time.
type session struct {
	port     *udpPort
	peer     peer
	now      *current
	record   record
	endpoint netip.AddrPort
	conn     *net.UDPConn
	raw      syscall.RawConn
	// reply is the control message of answers.
	reply []byte
	// active is when a datagram was last passed, since the session began.
	active         atomic.Int64
	received, sent atomic.Int64

	mu                  sync.Mutex
	requests, responses int
	ended, isCut        bool
}

// request counts one more datagram of the client. It is false if the session has ended.
func (s *session) request() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return !s.ended
}

// respond counts one more datagram of the endpoint. It reports whether it was the last one.
func (s *session) respond() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responses++
	s.ended = s.ended || s.responses >= s.requests*s.now.Responses
	return s.ended
}

// send sends a datagram to the endpoint. It never waits: a datagram that finds no room is
// lost.
func (s *session) send(datagram []byte) {
	s.active.Store(int64(time.Since(s.record.began)))
	s.received.Add(int64(len(datagram)))
	s.port.of.counters.received.Add(int64(len(datagram)))
	// An endpoint that refuses datagrams is noticed when its answer is read.
	_ = s.raw.Write(func(fd uintptr) bool {
		_, _ = ignoringInterrupts(func() (int, error) { return syscall.Write(int(fd), datagram) })
		return true
	})
}

// receive passes the answers of the endpoint to the client, and ends the session.
func (s *session) receive() {
	if !s.waitUntil(s.record.began.Add(s.now.Idle)) {
		s.finish(statusOK)
		return
	}
	var buffer *[maxDatagram]byte
	var n int
	var err error
	read := func(fd uintptr) bool {
		buffer = datagrams.Get().(*[maxDatagram]byte)
		if n, err = ignoringInterrupts(func() (int, error) { return syscall.Read(int(fd), buffer[:]) }); err == nil {
			return true
		}
		datagrams.Put(buffer)
		return !errors.Is(err, syscall.EAGAIN)
	}
	for {
		if waited := s.raw.Read(read); waited != nil {
			if errors.Is(waited, os.ErrDeadlineExceeded) && s.extend() {
				continue
			}
			s.finish(statusOK)
			return
		}
		if err != nil {
			// Its port is closed.
			s.port.of.table.failed(s.endpoint)
			s.finish(statusBadGateway)
			return
		}
		s.answer(buffer[:n])
		datagrams.Put(buffer)
		if s.respond() {
			s.port.of.table.worked(s.endpoint)
			s.finish(statusOK)
			return
		}
	}
}

// extend sets the next deadline of a session that was not idle for long.
func (s *session) extend() bool {
	until := s.record.began.Add(time.Duration(s.active.Load()) + s.now.Idle)
	return time.Now().Before(until) && s.waitUntil(until)
}

// waitUntil sets the deadline of the reader. It is false if the session was cut.
func (s *session) waitUntil(until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isCut && s.conn.SetReadDeadline(until) == nil
}

func (s *session) answer(datagram []byte) {
	// A datagram that can't be sent is lost.
	if _, _, err := s.port.conn.WriteMsgUDPAddrPort(datagram, s.reply, s.peer.client); err == nil {
		s.sent.Add(int64(len(datagram)))
		s.port.of.counters.sent.Add(int64(len(datagram)))
	}
	s.active.Store(int64(time.Since(s.record.began)))
}

// finish removes the session.
func (s *session) finish(status int) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	u := s.port
	u.mu.Lock()
	if u.sessions[s.peer] == s {
		delete(u.sessions, s.peer)
	}
	u.mu.Unlock()
	s.conn.Close()
	s.record.status, s.record.received, s.record.sent = status, s.received.Load(), s.sent.Load()
	u.of.finish(s.now, &s.record)
	u.of.leave(s)
}

// cut ends the session soon: its reader notices.
func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isCut = true; s.conn != nil {
		// A closed connection is at its end already.
		_ = s.conn.SetReadDeadline(time.Now())
	}
}
