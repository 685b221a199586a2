package stream

import (
	"cmp"
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream/proxyheader"
	"github.com/headgate/headgate/internal/stream/socket"
)

// The protocols of the counters of a TLS: of connections that are passed through, and of
// those that NGINX gets.
const (
	passedProtocol = "tls"
	handedProtocol = "https"
)

// A TLS listens on the port for https beside NGINX. It reads the server name that clients
// ask for, and passes connections for some hosts on to endpoints as they are. All others it
// hands to NGINX. As long as there is no such host, the kernel gives it no connections at
// all (see steer).
type TLS struct {
	server    *Server
	port      uint16
	nginx     *net.UnixAddr
	listeners map[netip.AddrPort]*net.TCPListener
	// front has the connections that NGINX gets, and those whose name is not known yet.
	front   *listening
	waiting waiting
	// badHeaders bounds the log.
	badHeaders seldom
	settings   atomic.Pointer[model.TLSPassthrough]
	stopped    chan struct{}
	buffers    sync.Pool

	mu       sync.RWMutex
	accepts  bool
	ended    bool
	hosts    map[string]*tlsHost
	backends map[string]*tlsBackend
	// names are all that Ingresses have: NGINX serves those that are not passed through, though the
	// wildcard above them is.
	names map[string]struct{}
}

// A tlsHost is one whose connections are passed through.
type tlsHost struct {
	*listening
	backend string
}

// A tlsBackend has the endpoints of a backend, and the hosts that lead to it.
type tlsBackend struct {
	endpoints []netip.AddrPort
	hosts     map[string]*tlsHost
	// gone is set if it is removed once it has no host.
	gone bool
}

// NewTLS returns the TLS for a port, with the settings, limits and log of the Server, which
// shuts it down too. NGINX is the unix socket at which that takes connections with a header of the PROXY protocol.
func (s *Server) NewTLS(port uint16, nginx string) *TLS {
	t := &TLS{
		server: s, port: port, nginx: &net.UnixAddr{Name: nginx, Net: "unix"}, stopped: make(chan struct{}),
		listeners: map[netip.AddrPort]*net.TCPListener{}, hosts: map[string]*tlsHost{}, backends: map[string]*tlsBackend{}, names: map[string]struct{}{},
		buffers: sync.Pool{New: func() any { return new([socket.BufferSize]byte) }},
	}
	t.settings.Store(&model.TLSPassthrough{Workers: 1})
	t.front = t.newListening(handedProtocol)
	t.front.unbounded = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tls = t
	return t
}

// Listen listens on addresses of the port that NGINX will listen on too, with SO_REUSEPORT, and no longer on
// others. It must come before NGINX for those that are new, and after it for others. If it fails, it has
// closed none and opened none.
func (t *TLS) Listen(addresses []netip.AddrPort) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errStopped
	}
	if err := t.server.openLoops(); err != nil {
		return err
	}
	opened := map[netip.AddrPort]*net.TCPListener{}
	for _, address := range addresses {
		if t.listeners[address] != nil || opened[address] != nil {
			continue
		}
		listener, err := socket.ListenShared(address)
		if err == nil {
			opened[address] = listener
			err = t.steerOne(listener)
		}
		if err != nil {
			closeAll(opened)
			return err
		}
	}
	for address, listener := range t.listeners {
		if !slices.Contains(addresses, address) {
			listener.Close()
			delete(t.listeners, address)
		}
	}
	maps.Copy(t.listeners, opened)
	if t.accepts {
		t.acceptAll(opened)
	}
	return nil
}

func (t *TLS) acceptAll(listeners map[netip.AddrPort]*net.TCPListener) {
	for _, l := range listeners {
		go t.front.accept(l, t.serve)
	}
}

func (t *TLS) newListening(protocol string) *listening {
	l := &listening{server: t.server, drained: make(chan struct{}), members: map[member]struct{}{}}
	stream := &model.Stream{Protocol: protocol, Port: t.port}
	l.stream.Store(stream)
	l.table.Set(nil)
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	l.counters = t.server.countersOf(stream)
	return l
}

func closeAll(listeners map[netip.AddrPort]*net.TCPListener) {
	for _, l := range listeners {
		l.Close()
	}
}

// Configure sets what applies to connections from now on. The first time, it begins to
// accept them: the hosts and the backends must be known.
func (t *TLS) Configure(settings model.TLSPassthrough) {
	t.mu.Lock()
	defer t.mu.Unlock()
	settings.Workers = max(settings.Workers, 1)
	t.settings.Store(&settings)
	t.steer()
	if !t.accepts && !t.ended {
		t.accepts = true
		t.acceptAll(t.listeners)
	}
}

// SetHost passes the connections of a host through to a backend, or hands them to NGINX if
// that is empty.
func (t *TLS) SetHost(name, backend string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[name]
	if t.ended || h == nil && backend == "" || h != nil && h.backend == backend {
		return
	}
	if h != nil {
		t.unlink(name, h)
	}
	if backend == "" {
		delete(t.hosts, name)
		t.server.mu.Lock()
		t.server.stop(h.listening, t.server.current.Load().drain)
		t.server.mu.Unlock()
	} else {
		if h == nil {
			h = &tlsHost{listening: t.newListening(passedProtocol)}
			t.hosts[name] = h
		}
		h.backend = backend
		b := t.backendOf(backend)
		b.hosts[name] = h
		t.change(h, b)
	}
	if backend == "" || len(t.hosts) == 1 {
		t.steer()
	}
}

// SetBackend sets the endpoints of a backend, which may have no host.
func (t *TLS) SetBackend(key string, endpoints []netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(endpoints) == 0 && t.backends[key] == nil {
		return
	}
	b := t.backendOf(key)
	b.endpoints, b.gone = endpoints, false
	for _, h := range b.hosts {
		t.change(h, b)
	}
	t.forget(key, b)
}

// RemoveBackend removes a backend once no host leads to it.
func (t *TLS) RemoveBackend(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.backends[key]; b != nil {
		b.gone = true
		t.forget(key, b)
	}
}

func (t *TLS) backendOf(key string) *tlsBackend {
	b := t.backends[key]
	if b == nil {
		b = &tlsBackend{hosts: map[string]*tlsHost{}}
		t.backends[key] = b
	}
	return b
}

func (t *TLS) unlink(name string, h *tlsHost) {
	b := t.backends[h.backend]
	delete(b.hosts, name)
	t.forget(h.backend, b)
}

// forget forgets a backend without hosts that has no endpoints or is gone.
func (t *TLS) forget(key string, b *tlsBackend) {
	if (b.gone || len(b.endpoints) == 0) && len(b.hosts) == 0 {
		delete(t.backends, key)
	}
}

// change has new connections of a host go to the endpoints of its backend.
func (t *TLS) change(h *tlsHost, b *tlsBackend) {
	stream := model.Stream{Protocol: passedProtocol, Port: t.port, Endpoints: b.endpoints}
	if name := strings.Split(h.backend, "/"); len(name) == 3 {
		stream.Namespace, stream.Service, stream.ServicePort = name[0], name[1], name[2]
	}
	h.listening.change(stream)
}

// steer has the kernel give connections to this listener if there are hosts, and to NGINX
// alone if there are none.
func (t *TLS) steer() {
	if t.ended {
		return
	}
	for _, l := range t.listeners {
		if err := t.steerOne(l); err != nil {
			t.server.settings.Log.Error("connections for https can't be divided between NGINX and TLS passthrough", "error", err)
		}
	}
}

func (t *TLS) steerOne(l *net.TCPListener) error {
	return socket.Steer(l, len(t.hosts) > 0, t.settings.Load().Workers)
}

// SetName notes that Ingresses have a name, or have it no longer.
func (t *TLS) SetName(name string, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known {
		t.names[name] = struct{}{}
	} else {
		delete(t.names, name)
	}
}

// host is nil for a connection that NGINX gets. A wildcard has those for the names below it that no Ingress
// has, and the host of Ingresses without one those without a name.
func (t *TLS) host(a *arrival) *listening {
	t.mu.RLock()
	defer t.mu.RUnlock()
	name := a.name
	if a.nameless {
		name = model.DefaultHost
	}
	h := t.hosts[name]
	if _, known := t.names[name]; h == nil && !known {
		if above, ok := model.WildcardAbove(name); ok {
			h = t.hosts[above]
		}
	}
	if h == nil {
		return nil
	}
	return h.listening
}

// Shutdown takes no further connections, and waits until all have ended. When ctx ends, they
// are cut.
func (t *TLS) Shutdown(ctx context.Context) {
	t.mu.Lock()
	if !t.ended {
		t.ended = true
		close(t.stopped)
	}
	closeAll(t.listeners)
	all := []*listening{t.front}
	for _, h := range t.hosts {
		all = append(all, h.listening)
	}
	t.mu.Unlock()
	// None of these is served yet, and NGINX takes no further ones.
	t.waiting.closeAll()
	for _, l := range all {
		l.stop()
	}
	for _, l := range all {
		l.await(ctx)
	}
}

// headerTimeout is how long a load balancer may take to send its header.
func headerTimeout(settings *model.TLSPassthrough) time.Duration {
	return cmp.Or(settings.HeaderTimeout, proxyheader.Timeout)
}
