package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream/endpoint"
	"github.com/headgate/headgate/internal/stream/logline"
)

// LastAnswerTimeout is how long a session waits for an answer when Headgate ends, or of an
// endpoint that was removed.
const LastAnswerTimeout = 5 * time.Second

// await waits until a port that was stopped is drained. When ctx ends, it is cut.
func (l *listening) await(ctx context.Context) {
	tick := time.NewTicker(LastAnswerTimeout / 5)
	defer tick.Stop()
	for {
		select {
		case <-l.drained:
			return
		case <-tick.C:
			for _, u := range l.udp {
				u.cutIdle(LastAnswerTimeout)
			}
		case <-ctx.Done():
			l.cut(0)
			<-l.drained
			return
		}
	}
}

// A member is a connection or session of a port.
type member interface {
	// cut ends it at once.
	cut()
}

// A listening is an open port with its connections or sessions.
type listening struct {
	server   *Server
	stream   atomic.Pointer[model.Stream]
	table    endpoint.Table
	counters *counters
	// tcp and udp have a socket for each address.
	tcp []io.Closer
	udp []*udpPort
	// unbounded has no limit of its own, only that of all ports.
	unbounded bool

	mu      sync.Mutex
	members map[member]struct{}
	// stopped is set when it takes no new ones.
	stopped bool
	// stops counts how often it was.
	stops   int
	drained chan struct{} // closed when it is stopped and none is left
}

func (l *listening) name() string { return l.stream.Load().Name() }

// change applies a new version of the stream to new connections.
func (l *listening) change(stream model.Stream) {
	l.stream.Store(&stream)
	l.table.Set(stream.Endpoints)
}

func (l *listening) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.members)
}

var errStopped = errors.New("the port is closed")

// enter adds a connection or session, if there is room for it.
func (l *listening) enter(m member) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return errStopped
	}
	count := len(l.members)
	if l.unbounded {
		count = 0
	}
	if err := l.server.limits.take(count); err != nil {
		return err
	}
	l.members[m] = struct{}{}
	l.counters.open.Add(1)
	return nil
}

// acceptPause is the time until accepting is tried again after it failed.
const acceptPause = 50 * time.Millisecond

// accept has each connection served, if there is room for it, until the listener is closed.
func (l *listening) accept(listener *net.TCPListener, serve func(*connection)) {
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
		go serve(c)
	}
}

func (l *listening) leave(m member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.members, m)
	l.counters.open.Add(-1)
	l.server.limits.give()
	l.checkDrained()
}

func (l *listening) checkDrained() {
	if l.stopped && len(l.members) == 0 {
		select {
		case <-l.drained:
		default:
			close(l.drained)
			l.closeUDP()
		}
	}
}

// closeUDP closes the sockets of UDP.
func (l *listening) closeUDP() {
	for _, u := range l.udp {
		u.close()
	}
}

// cutUDP ends the sessions of a UDP port that was stopped, so that its sockets are closed.
func (l *listening) cutUDP() {
	if len(l.udp) > 0 {
		l.cut(0)
	}
}

// stop takes no new connections or sessions. It returns how often that was done.
func (l *listening) stop() int {
	for _, listener := range l.tcp {
		listener.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.stops++
	l.checkDrained()
	return l.stops
}

// reopen takes up a port that was stopped and is not drained. It reports whether it could.
func (l *listening) reopen(stream model.Stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.drained:
		return false
	default:
	}
	l.stopped = false
	l.change(stream)
	return true
}

// cut ends all connections or sessions, unless it was reopened since it was stopped; 0 is
// the last time. It reports whether it did.
func (l *listening) cut(stop int) bool {
	l.mu.Lock()
	if !l.stopped || stop != 0 && stop != l.stops {
		l.mu.Unlock()
		return false
	}
	all := make([]member, 0, len(l.members))
	for m := range l.members {
		all = append(all, m)
	}
	l.mu.Unlock()
	for _, m := range all {
		m.cut()
	}
	return true
}

// finish counts and logs a connection or session that has ended.
func (l *listening) finish(now *current, r *logline.Record) {
	l.counters.end(r.Status)
	if now.AccessLog && l.server.settings.AccessLog != nil {
		// The log drops lines rather than fail.
		_, _ = l.server.settings.AccessLog.Write(now.line.Line(r, time.Now()))
	}
}
