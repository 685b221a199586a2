// Package stream passes TCP and UDP ports on to endpoints: it opens and closes the ports,
// and relays connections and datagrams. NGINX takes no part in it.
//
// A port that is no longer wanted is closed at once, and its connections drain: they go
// on until they end, or until a limit, as after a reload of NGINX. A change of the
// endpoints of a port changes where new connections go, and nothing else.
//
// The package acts. It must not know Kubernetes: what is wanted, and who gets reports of a
// port that can't be opened, is handed in.
package stream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream/logline"
	"github.com/headgate/headgate/internal/stream/socket"
)

// Settings are the parts of a Server.
type Settings struct {
	// AccessLog gets one line for each connection or session, in one call each. It must not
	// block. Nil discards them.
	AccessLog io.Writer
	// LogTo changes where the lines go, as logging.Target names it. It may be nil.
	LogTo func(target string)
	Log   *slog.Logger
	// Problem reports why a port can't be opened, and nil once it is open or not wanted any
	// more. It must not block, nor call the Server. It may be nil.
	Problem func(s model.Stream, err error)
}

// A Server serves streams.
type Server struct {
	settings Settings
	current  atomic.Pointer[current]
	limits   *limits

	mu      sync.Mutex
	loops   socket.Loops
	ports   map[string]*port // wanted ones, by the names of their streams
	closing map[*listening]struct{}
	// addresses are those that are listened on, empty for all.
	addresses []netip.Addr
	metrics   map[string]*counters
	tls       *TLS // nil if there is none
	ended     bool
	retry     *time.Timer
	pause     time.Duration
}

// current is what applies to connections that begin now.
type current struct {
	model.StreamSettings
	// drain is how long connections of a closed port go on.
	drain time.Duration
	line  logline.Format
}

// A port is wanted. It is open while it has endpoints, unless it can't be opened.
type port struct {
	stream model.Stream
	open   *listening
	failed bool
}

// New returns a Server without ports.
func New(settings Settings) *Server {
	s := &Server{
		settings: settings, limits: newLimits(),
		ports: map[string]*port{}, closing: map[*listening]struct{}{}, metrics: map[string]*counters{},
	}
	s.Configure(model.DefaultStreamSettings(), defaultDrain)
	return s
}

const defaultDrain = 240 * time.Second

// Configure sets what applies to all streams, from the next connection on. Drain is how
// long connections of a closed port go on.
func (s *Server) Configure(settings model.StreamSettings, drain time.Duration) {
	if s.settings.LogTo != nil {
		s.settings.LogTo(settings.LogTarget.String())
	}
	s.current.Store(&current{StreamSettings: settings, drain: drain, line: logline.NewFormat(settings.LogFormat)})
}

// Set opens or changes the port of a stream, by its name; nil closes it.
func (s *Server) Set(name string, wanted *model.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	p := s.ports[name]
	if wanted == nil {
		if p != nil {
			s.close(p)
			s.problem(p, nil)
			delete(s.ports, name)
		}
		return
	}
	if p == nil {
		p = &port{}
		s.ports[name] = p
	}
	p.stream = *wanted
	s.reconcile(p)
}

// reconcile opens, changes or closes a port. A port that can't be opened is tried again.
func (s *Server) reconcile(p *port) {
	switch {
	case len(p.stream.Endpoints) == 0:
		s.close(p)
		s.problem(p, nil)
	case p.open != nil:
		p.open.change(p.stream)
	default:
		opened, err := s.listen(p.stream)
		if err != nil {
			s.problem(p, err)
			s.retryLater()
			return
		}
		p.open = opened
		s.settings.Log.Info("port opened", "port", p.stream.Name(), "service", p.stream.Namespace+"/"+p.stream.Service)
		s.problem(p, nil)
	}
}

// problem reports a port that can't be opened, and its end.
func (s *Server) problem(p *port, err error) {
	if (err != nil || p.failed) && s.settings.Problem != nil {
		s.settings.Problem(p.stream, err)
	}
	p.failed = err != nil
}

// The time until a port that could not be opened is tried again.
const (
	firstRetry = 500 * time.Millisecond
	maxRetry   = 15 * time.Second
)

func (s *Server) retryLater() {
	if s.retry != nil {
		return
	}
	s.pause = min(max(firstRetry, 2*s.pause), maxRetry)
	s.retry = time.AfterFunc(s.pause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retry = nil
		if s.ended {
			return
		}
		for _, p := range s.ports {
			if p.failed {
				s.reconcile(p)
			}
		}
		if s.retry == nil {
			s.pause = 0
		}
	})
}

// listen opens the port of a stream. One that was just closed, and whose sessions still
// drain, may be taken up again.
func (s *Server) listen(stream model.Stream) (*listening, error) {
	l := &listening{server: s, drained: make(chan struct{}), members: map[member]struct{}{}}
	l.stream.Store(&stream)
	l.counters = s.countersOf(&stream)
	l.table.Set(stream.Endpoints)
	for old := range s.closing {
		if len(old.udp) > 0 && old.name() == stream.Name() && old.reopen(stream) {
			delete(s.closing, old)
			return old, nil
		}
	}
	if err := s.loops.Open(); err != nil {
		return nil, err
	}
	if stream.Protocol == model.UDP {
		return l, l.listenUDP(s.addresses)
	}
	return l, l.listenTCP(s.addresses)
}

// Listen sets the addresses to listen on, empty for all. Ports that are open are opened there instead: TCP
// connections go on, and UDP sessions end, whose answers come from the sockets that are closed.
func (s *Server) Listen(addresses []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || slices.Equal(s.addresses, addresses) {
		return
	}
	s.addresses = slices.Clone(addresses)
	for l := range s.closing {
		l.cutUDP()
	}
	for _, p := range s.ports {
		if l := p.open; l != nil {
			s.close(p)
			l.cutUDP()
			s.reconcile(p)
		}
	}
}

// close closes a port. Its connections drain.
func (s *Server) close(p *port) {
	l := p.open
	if l == nil {
		return
	}
	p.open = nil
	limit := s.current.Load().drain
	s.settings.Log.Info("port closed", "port", p.stream.Name(), "connections", l.count(), "drain", limit)
	s.stop(l, limit)
}

// stop has an open port take no new connections, and those that it has drain.
func (s *Server) stop(l *listening, limit time.Duration) {
	s.closing[l] = struct{}{}
	go s.drain(l, l.stop(), limit)
}

// drain waits until a port that was stopped is drained, and cuts what is left after a
// limit, unless the port was reopened.
func (s *Server) drain(l *listening, stop int, limit time.Duration) {
	select {
	case <-l.drained:
	case <-time.After(limit):
		if !l.cut(stop) {
			return
		}
		<-l.drained
	}
	s.mu.Lock()
	delete(s.closing, l)
	s.mu.Unlock()
}

// openLoops makes the loops, unless they are there.
func (s *Server) openLoops() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loops.Open()
}

// Shutdown closes all ports, and that of the TLS, and waits until their connections have
// ended. When ctx ends, they are cut.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.ended = true
	if s.retry != nil {
		s.retry.Stop()
	}
	var all []*listening
	for l := range s.closing {
		all = append(all, l)
	}
	for _, p := range s.ports {
		if p.open != nil {
			p.open.stop()
			all = append(all, p.open)
			p.open = nil
		}
	}
	shared := s.tls
	s.mu.Unlock()
	var others sync.WaitGroup
	if shared != nil {
		others.Go(func() { shared.Shutdown(ctx) })
	}
	for _, l := range all {
		l.await(ctx)
	}
	others.Wait()
	s.loops.Close()
}

// isTemporary reports whether accepting fails for want of resources, and may succeed
// again.
func isTemporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
