package stream

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/stream/logline"
	"github.com/headgate/headgate/internal/stream/socket"
)

// A udpPort is an open UDP port with its sessions.
type udpPort struct {
	of    *listening
	loop  *socket.Loop
	fd    int
	local socket.PacketInfo
	port  uint16
	began time.Time
	batch *socket.Datagrams // of the loop alone

	mu       sync.Mutex
	sessions map[peer]*session
	closed   bool
}

// A peer is a client, and the address of this machine that it sends to.
type peer struct {
	client netip.AddrPort
	local  netip.Addr
}

// listenUDP opens a port at addresses, without any of IPv4 and, where the machine has it, IPv6.
func (l *listening) listenUDP(addresses []netip.Addr) error {
	for _, at := range places(addresses) {
		if err := l.listenUDPAt(at); err != nil {
			l.closeUDP()
			return err
		}
	}
	return nil
}

func (l *listening) listenUDPAt(at place) error {
	stream := l.stream.Load()
	conn, err := net.ListenUDP("udp"+at.family, &net.UDPAddr{IP: net.ParseIP(at.host), Port: int(stream.Port)})
	if err != nil {
		return err
	}
	u := &udpPort{of: l, loop: l.server.loops.Next(), port: stream.Port, began: time.Now(), batch: socket.NewDatagrams(), sessions: map[peer]*session{}}
	if u.local, err = socket.NewPacketInfo(conn); err != nil {
		conn.Close()
		return err
	}
	if u.fd, err = socket.Detach(conn); err != nil {
		return err
	}
	if err := u.loop.Add(u.fd, u, unix.EPOLLIN); err != nil {
		socket.Close(u.fd)
		return err
	}
	l.udp = append(l.udp, u)
	return nil
}

func (u *udpPort) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	u.loop.Remove(u.fd)
	socket.Close(u.fd)
}

// ready passes on datagrams of clients. If there are more, it is called again.
func (u *udpPort) Ready(uint32) {
	for i := range u.read() {
		data, control, raw := u.batch.Get(i)
		u.pass(peer{client: socket.AddressOf(raw), local: u.local.Destination(control)}, raw, data)
	}
}

func (u *udpPort) read() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0
	}
	return u.batch.Read(u.fd)
}

// now is the time since the port was opened.
func (u *udpPort) now() time.Duration { return u.loop.Now().Sub(u.began) }

// pass sends a client's datagram to the endpoint of its session, or of a new one.
func (u *udpPort) pass(from peer, raw *socket.RawAddress, datagram []byte) {
	u.mu.Lock()
	s := u.sessions[from]
	u.mu.Unlock()
	if s != nil && s.request(datagram) {
		return
	}
	if !u.begin(from, raw, datagram) {
		u.of.counters.refused.Add(1)
	}
}

// begin begins a session with its first datagram. It is false if there is no room for it.
func (u *udpPort) begin(from peer, raw *socket.RawAddress, datagram []byte) bool {
	l := u.of
	s := &session{port: u, loop: l.server.loops.Next(), peer: from, now: l.server.current.Load(), to: *raw}
	s.active.Store(int64(u.now()))
	s.mu.Lock()
	defer s.mu.Unlock()
	err := l.enter(s)
	if errors.Is(err, errFull) && u.evict() {
		err = l.enter(s)
	}
	if err != nil {
		return false
	}
	s.record = logline.Record{
		ID: l.counters.connection(), Began: u.loop.Now(), Stream: l.stream.Load(), Client: from.client, Local: netip.AddrPortFrom(from.local, u.port),
	}
	if !s.dial() {
		s.finish(statusFailed)
		return false
	}
	s.reply = u.local.Reply(from.local)
	u.mu.Lock()
	u.sessions[from] = s
	u.mu.Unlock()
	// It is the first one, of which a refusal comes later. An error that is there already may be
	// of the session that had the socket before, and is gone then.
	err = s.send(datagram)
	if err != nil {
		err = s.send(datagram)
	}
	if err != nil {
		s.refused()
		return false
	}
	if s.now.Responses == 0 {
		s.finish(statusOK)
		return true
	}
	s.timer = time.AfterFunc(s.now.Idle, s.checkIdle)
	return true
}

// maxDials is how many endpoints a session tries: most cannot fail before they are sent to.
const maxDials = 3

// dial makes the socket to an endpoint. One without a route to it is passed over.
func (s *session) dial() bool {
	for range maxDials {
		endpoint, ok := s.port.of.table.Next(s.record.Endpoints)
		if !ok {
			return false
		}
		fd, err := s.loop.DialUDP(endpoint, s)
		s.record.Tried(endpoint, 0, err == nil)
		if err == nil {
			s.endpoint, s.fd, s.dialed = endpoint, fd, true
			return true
		}
		s.port.of.table.Failed(endpoint)
	}
	return false
}

// looked is among how many sessions evict looks for the one to end.
const looked = 8

// evict ends the session that was idle for longest, of a few. So clients that send from
// ever new addresses don't keep others out.
func (u *udpPort) evict() bool {
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
	return oldest != nil
}

// cutIdle ends the sessions that were idle for some time.
func (u *udpPort) cutIdle(limit time.Duration) {
	var idle []*session
	u.mu.Lock()
	for _, s := range u.sessions {
		if s.idle() >= limit {
			idle = append(idle, s)
		}
	}
	u.mu.Unlock()
	for _, s := range idle {
		s.cut()
	}
}

// A session is what a client sends, and what the endpoint answers, until there are as many
// answers as are expected, or none comes for some time.
type session struct {
	port     *udpPort
	loop     *socket.Loop
	peer     peer
	now      *current
	endpoint netip.AddrPort
	fd       int
	// to and reply are the address and the control message of answers.
	to    socket.RawAddress
	reply []byte

	// active is when a datagram was last passed, since the port was opened.
	active atomic.Int64

	mu     sync.Mutex
	record logline.Record
	timer  *time.Timer
	// asked is when the first datagram was sent since the last answer, 0 for none.
	asked               time.Duration
	requests, responses int
	dialed, ended       bool
}

// request passes on one more datagram of the client. It is false if the session has ended,
// also because the endpoint has refused the datagram before, or is gone.
func (s *session) request(datagram []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	if s.isForsaken() {
		s.finish(statusOK)
		return false
	}
	s.active.Store(int64(s.port.now()))
	if s.send(datagram) != nil {
		s.refused()
		return false
	}
	return true
}

// isForsaken reports whether the endpoint was removed and does not answer: its pod has ended, and
// nothing says so. A client that sends again and again would keep the session forever. A pod
// that is about to end answers, and keeps its sessions.
func (s *session) isForsaken() bool {
	return s.asked > 0 && s.port.now()-s.asked >= LastAnswerTimeout && !s.port.of.table.Has(s.endpoint)
}

// send sends a datagram to the endpoint, unless that has refused one before, or can't be
// reached. It never waits: a datagram that finds no room, or is too large, is lost.
func (s *session) send(datagram []byte) error {
	_, err := socket.Send(s.fd, datagram)
	if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EMSGSIZE) {
		return err
	}
	if s.requests++; s.asked == 0 {
		s.asked = s.port.now()
	}
	s.record.Received += int64(len(datagram))
	s.port.of.counters.passed.Received.Add(int64(len(datagram)))
	return nil
}

// refused ends the session: the port of the endpoint is closed.
func (s *session) refused() {
	s.port.of.table.Failed(s.endpoint)
	s.finish(statusBadGateway)
}

// ready passes the answers of the endpoint to the client, and ends the session after the last
// one.
func (s *session) Ready(uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range socket.Turn {
		if s.ended {
			return
		}
		n, err := socket.Receive(s.fd, s.loop.Buffer())
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil:
			s.refused()
		default:
			s.answer(s.loop.Buffer()[:n])
			if s.responses++; s.responses >= s.requests*s.now.Responses {
				s.port.of.table.Worked(s.endpoint)
				s.finish(statusOK)
			}
		}
	}
	s.loop.Later(s)
}

func (s *session) answer(datagram []byte) {
	s.active.Store(int64(s.loop.Now().Sub(s.port.began)))
	s.asked = 0
	// A datagram that can't be sent is lost.
	if socket.SendTo(s.port.fd, datagram, &s.to, s.reply) == nil {
		s.record.Sent += int64(len(datagram))
		s.port.of.counters.passed.Sent.Add(int64(len(datagram)))
	}
}

// idle is for how long the session was idle.
func (s *session) idle() time.Duration {
	return time.Since(s.port.began) - time.Duration(s.active.Load())
}

// checkIdle ends a session that was idle for too long.
func (s *session) checkIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if left := s.now.Idle - s.idle(); left > 0 {
		s.timer.Reset(left)
		return
	}
	s.finish(statusOK)
}

// cut ends the session at once.
func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.finish(statusOK)
	}
}

// finish removes the session.
func (s *session) finish(status int) {
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.dialed {
		s.loop.GiveUDP(s.fd, s.endpoint)
	}
	u := s.port
	u.mu.Lock()
	if u.sessions[s.peer] == s {
		delete(u.sessions, s.peer)
	}
	u.mu.Unlock()
	s.record.Status = status
	u.of.finish(s.now, &s.record)
	u.of.leave(s)
}
