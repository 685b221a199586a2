package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Limits of what connections can take up.
const (
	// maxHandshakes is how many connections may be at their handshake at a time, maxStrangers how many
	// without a certificate there may be, and maxEdges how many with one. Further ones are closed.
	maxHandshakes = 1000
	maxStrangers  = 200
	maxEdges      = 4000
	// maxHandshakesOf and maxStrangersOf are how many of these may be of one address, or of one network of
	// IPv6, maxOfPod how many connections may show certificates of one Pod, and maxOfName how many those of
	// one name of which several edges may have the certificate.
	maxHandshakesOf = 100
	maxStrangersOf  = 20
	maxOfPod        = 8
	maxOfName       = 1000
	// handshakeTimeout is how long a handshake may take, and strangerTimeout how long a connection
	// without a certificate lives.
	handshakeTimeout = 10 * time.Second
	strangerTimeout  = 30 * time.Second
	// minAcceptPause and maxAcceptPause are the times after which another connection is accepted if one
	// could not be: twice as long each time.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
	// lingerTime and lingerBytes bound what is read after a handshake that has failed.
	lingerTime  = time.Second
	lingerBytes = 64 << 10
	// maxStreams is how many streams an edge may have at a time.
	maxStreams = 16
	// readBuffer is the size of the buffer for what an edge sends, in bytes: that is little, but for the first request.
	readBuffer = 4 << 10
	// edgeWindow is how much an edge may send on a stream before it is read, in bytes, and controlWindow the same for a control.
	edgeWindow    = 128 << 10
	controlWindow = 1 << 20
	// maxHeader is the maximum size of headers, in bytes.
	maxHeader = 16 << 10
	// maxEnroll is the maximum size of a message from who has no certificate, in bytes.
	maxEnroll = 32 << 10
	// idleTimeout is how long a connection without streams lives.
	idleTimeout = 5 * time.Minute
	// pingInterval is after which silence each side asks whether the other one is there, and pingTimeout
	// how long it waits for the answer. Edges may ask every minPing.
	pingInterval = 20 * time.Second
	pingTimeout  = 10 * time.Second
	minPing      = 10 * time.Second
	// recheckInterval is how often an open stream is checked for a certificate that is still trusted.
	recheckInterval = time.Minute
	// expiryGrace is how long after its certificate has expired a connection lives, for the reason to
	// be sent on its streams.
	expiryGrace = 5 * time.Second
)

// ServerSettings are the options of a Server.
type ServerSettings struct {
	Source Source
	// Review says who has a token. An error that is a Refusal is for whom it came from.
	Review func(ctx context.Context, token string) (Identity, error)
	// Renew says whether an edge may have another certificate. It may be nil, for all of them.
	Renew func(Identity) error
	// MaxMessage is the maximum size of a message from an edge, in bytes.
	MaxMessage int
	// Codec encodes messages to edges; nil for that of gRPC.
	Codec encoding.CodecV2
	// Validity is that of edges' certificates, EdgeValidity if it is 0.
	Validity time.Duration
	Log      *slog.Logger
	// recheck is recheckInterval; another one in tests.
	recheck time.Duration
}

// A Server takes connections of edges, and of who wants to be one. Services that are registered with
// it are only for edges: connections without a certificate lead to a server of their own, with the
// enrollment alone and small messages.
type Server struct {
	source           Source
	log              *slog.Logger
	edges, strangers *grpc.Server
	handshakes       chan struct{}
	shaking          shares[place]
	toEdges          *queue[Identity]
	toStrangers      *queue[place]
	// grace is expiryGrace; another one in tests.
	grace time.Duration
}

// NewServer makes a Server that serves nothing but the enrollment.
func NewServer(s ServerSettings) *Server {
	server := &Server{
		source: s.Source, log: s.Log, grace: expiryGrace,
		handshakes: make(chan struct{}, maxHandshakes), toEdges: newQueue[Identity](maxEdges), toStrangers: newQueue[place](maxStrangers),
	}
	common := func(most int, streams uint32, life keepalive.ServerParameters) []grpc.ServerOption {
		life.Time, life.Timeout = pingInterval, pingTimeout
		return []grpc.ServerOption{
			grpc.Creds(handshaken{}), grpc.MaxRecvMsgSize(most), grpc.MaxSendMsgSize(max(most, s.MaxMessage)), grpc.MaxConcurrentStreams(streams),
			grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(handshakeTimeout), grpc.KeepaliveParams(life),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		}
	}
	options := append(
		common(s.MaxMessage, maxStreams, keepalive.ServerParameters{MaxConnectionIdle: idleTimeout}),
		grpc.StreamInterceptor(streamGuard(s.Source, cmp.Or(s.recheck, recheckInterval))), grpc.UnaryInterceptor(unaryGuard(s.Source)),
		// A token is of one edge. A certificate from elsewhere may be that of many.
		grpc.ChainStreamInterceptor((&streams{shared: s.Review == nil}).bound),
		grpc.ReadBufferSize(readBuffer),
		// A window that grows costs a ping for each message.
		grpc.StaticStreamWindowSize(edgeWindow), grpc.StaticConnWindowSize(2*edgeWindow),
	)
	if s.Codec != nil {
		options = append(options, grpc.ForceServerCodecV2(s.Codec))
	}
	server.edges = grpc.NewServer(options...)
	server.strangers = grpc.NewServer(append(
		common(maxEnroll, 1, keepalive.ServerParameters{MaxConnectionAge: strangerTimeout, MaxConnectionAgeGrace: time.Second}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			return status.Error(codes.Unauthenticated, "the connection has no certificate of an edge")
		}),
	)...)
	enroller := newEnroller(s, cmp.Or(s.Validity, EdgeValidity))
	server.edges.RegisterService(enrollment(), enroller)
	server.strangers.RegisterService(enrollment(), enroller)
	return server
}

// RegisterService has edges, and no other clients, served by a service. It must be called before Serve.
func (s *Server) RegisterService(service *grpc.ServiceDesc, implementation any) {
	s.edges.RegisterService(service, implementation)
}

// Serve takes connections until Stop. Errors as that too many files are open do not end it.
func (s *Server) Serve(listener net.Listener) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	defer s.Stop()
	s.toEdges.address, s.toStrangers.address = listener.Addr(), listener.Addr()
	// They end when the queues are closed, and then have nothing to say.
	serving.Go(func() { _ = s.edges.Serve(s.toEdges) })
	serving.Go(func() { _ = s.strangers.Serve(s.toStrangers) })
	serving.Go(func() {
		<-s.toEdges.closed
		listener.Close()
	})
	pause := minAcceptPause
	for {
		raw, err := listener.Accept()
		if err != nil {
			if again, err := s.pauseAccept(err, pause); !again {
				return err
			}
			pause = min(2*pause, maxAcceptPause)
			continue
		}
		pause = minAcceptPause
		s.shake(raw)
	}
}

// shake takes a connection, or closes it if there are too many.
func (s *Server) shake(raw net.Conn) {
	from := placeOf(raw.RemoteAddr())
	if !s.shaking.try(from, maxHandshakesOf) {
		raw.Close()
		return
	}
	select {
	case s.handshakes <- struct{}{}:
		go func() {
			defer func() {
				<-s.handshakes
				s.shaking.release(from)
			}()
			s.take(raw)
		}()
	default:
		s.shaking.release(from)
		raw.Close()
	}
}

// pauseAccept waits after an error of the listener: of most, others are the cause. It reports whether the
// server goes on.
func (s *Server) pauseAccept(err error, pause time.Duration) (bool, error) {
	select {
	case <-s.toEdges.closed:
		return false, nil
	default:
	}
	if errors.Is(err, net.ErrClosed) {
		return false, fmt.Errorf("accept connections of edges: %w", err)
	}
	s.log.Error("cannot accept a connection of an edge", "error", err, "effect", "it is tried again", "after", pause)
	select {
	case <-s.toEdges.closed:
		return false, nil
	case <-time.After(pause):
		return true, nil
	}
}

// Stop ends all connections, and Serve.
func (s *Server) Stop() {
	s.toEdges.close()
	s.toStrangers.close()
	s.edges.Stop()
	s.strangers.Stop()
}

// take makes the handshake of a connection, and hands it to the server that is for it.
func (s *Server) take(raw net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	connection := tls.Server(raw, serverConfig(s.source))
	if err := connection.HandshakeContext(ctx); err != nil {
		linger(raw)
		// Anyone can cause these.
		s.log.Debug("the handshake of an edge failed", "address", raw.RemoteAddr(), "error", err)
		return
	}
	state := connection.ConnectionState()
	if len(state.VerifiedChains) == 0 {
		s.toStrangers.put(&open{Conn: connection, state: state}, placeOf(raw.RemoteAddr()), maxStrangersOf)
		return
	}
	// Without an identity there is an error at each request: these connections have one share.
	who, _ := IdentityOf(state.PeerCertificates[0])
	most := int64(maxOfName)
	if who.isPod() {
		most = maxOfPod
	}
	ends := time.AfterFunc(time.Until(state.PeerCertificates[0].NotAfter)+s.grace, func() { raw.Close() })
	s.toEdges.put(&open{Conn: connection, state: state, ends: ends}, who, most)
}

// linger closes a connection such that the alert before it arrives: a client that is still sending would
// get to know of the end alone.
func linger(raw net.Conn) {
	defer raw.Close()
	half, ok := raw.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || raw.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, raw, lingerBytes)
}

// serverConfig is that of one handshake or of all: it asks the source at each.
func serverConfig(source Source) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		trust, err := source()
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{alpn}, Certificates: []tls.Certificate{*trust.Certificate},
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: trust.Edges,
			// A ticket would be good for longer than what was verified.
			SessionTicketsDisabled: true,
		}, nil
	}}
}

// Peer is the identity of the edge that has sent a request. It is an error if the connection has no
// certificate of one that is valid now.
func Peer(ctx context.Context) (Identity, error) {
	state, err := stateOf(ctx)
	if err != nil {
		return Identity{}, err
	}
	if len(state.VerifiedChains) == 0 {
		return Identity{}, errors.New("the connection has no certificate of an edge")
	}
	leaf := state.PeerCertificates[0]
	if time.Now().After(leaf.NotAfter) {
		return Identity{}, fmt.Errorf("the certificate of the edge has expired at %s", stamp(leaf.NotAfter))
	}
	return IdentityOf(leaf)
}

func stateOf(ctx context.Context) (*tls.ConnectionState, error) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil, errors.New("the request came over no connection")
	}
	secured, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil, errors.New("the connection is not secured")
	}
	return &secured.State, nil
}

// verified is Peer, by what is trusted now: that may be less than at the handshake. It returns the end
// of the certificate too.
func verified(ctx context.Context, source Source) (Identity, time.Time, error) {
	if _, err := Peer(ctx); err != nil {
		return Identity{}, time.Time{}, err
	}
	trust, err := source()
	if err != nil {
		return Identity{}, time.Time{}, err
	}
	state, err := stateOf(ctx)
	if err != nil {
		return Identity{}, time.Time{}, err
	}
	leaf := state.PeerCertificates[0]
	i, err := trust.verify(leaf, state.PeerCertificates[1:])
	return i, leaf.NotAfter, err
}
