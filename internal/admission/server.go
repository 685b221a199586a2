// Package admission serves the validating admission webhook: it decodes what API servers
// ask, and encodes what is decided.
//
// Anyone who reaches the port may connect. So all that a client does takes bounded memory
// and time, and no answer has more than the client sent and what reviews say of it.
package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/guard/pemfile"
)

// Limits of what clients can take up.
const (
	// maxBody is the maximum size of a request, as in ingress-nginx, and maxBodies that of
	// all requests together that are read or decoded.
	maxBody   = 9 << 20
	maxBodies = 32 << 20
	// maxObject is the maximum size of an Ingress. API servers take requests of that size.
	maxObject = 3 << 20
	// maxConnections is the number of connections beyond which new ones are closed.
	maxConnections = 4000
	// maxHeader is the maximum size of a request's header.
	maxHeader = 16 << 10
	// headerTimeout is also that of handshakes, readTimeout that of a whole request, and
	// idleTimeout that of connections between two requests.
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// reviewTimeout is how long a review may wait for others. writeTimeout covers reading,
	// waiting and writing.
	reviewTimeout = 10 * time.Second
	writeTimeout  = 30 * time.Second
)

// decoding is how many requests are decoded at a time: it takes much more memory than what
// is decoded has bytes.
func decoding() int { return 2 * runtime.GOMAXPROCS(0) }

// Settings are the options of a Server.
type Settings struct {
	// Address is the address to listen on, HOST:PORT or :PORT.
	Address string
	// Certificate is asked for the certificate of each connection. Without it,
	// CertificateFile and KeyFile are PEM files, which are read again when they change.
	Certificate              func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	CertificateFile, KeyFile string
	Review                   Review
	// Reviewed is called after each review of an Ingress, with its error. It may be nil.
	Reviewed func(ing *networkingv1.Ingress, d review.Decision, err error, took Took)
	// Registry gets the metrics.
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Took is how long a review took alone, and with the rest of the request up to then.
type Took struct{ Review, Total time.Duration }

// A Server serves the webhook.
type Server struct {
	listener net.Listener
	server   *http.Server
	handler  *handler
}

// Listen opens the port. A certificate that can't be read is logged: connections fail until
// it can be, and nothing else does.
func Listen(s Settings) (*Server, error) {
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the admission webhook: %w", err)
	}
	if s.Certificate == nil {
		files := pemfile.Pair(s.Log, "the certificate of the admission webhook", "API servers can't connect to the webhook", s.CertificateFile, s.KeyFile)
		_, _ = files.Get() // This logs what is wrong.
		s.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return files.Get() }
	}
	h := &handler{
		review: s.Review, reviewed: s.Reviewed, bodies: semaphore.NewWeighted(maxBodies), decoders: semaphore.NewWeighted(int64(decoding())),
		metrics: newMetrics(s.Registry), log: s.Log,
	}
	var protocols http.Protocols
	// ingress-nginx has HTTP/2 off, since connections of API servers hung.
	protocols.SetHTTP1(true)
	secured := tls.NewListener(&limited{Listener: listener, most: maxConnections}, &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate, NextProtos: []string{"http/1.1"},
	})
	return &Server{listener: secured, handler: h, server: &http.Server{
		Handler: h, Protocols: &protocols, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		// Anyone can cause these.
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}}, nil
}

// Address is the address that the Server listens on.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Serve serves until Close.
func (s *Server) Serve() error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the admission webhook: %w", err)
	}
	return nil
}

// Close ends the server: reviews that are going on may end before ctx does.
func (s *Server) Close(ctx context.Context) error {
	if err := s.server.Shutdown(ctx); err != nil {
		return s.server.Close()
	}
	return nil
}

// A limited listener closes connections at once that are too many.
type limited struct {
	net.Listener
	open atomic.Int64
	most int64
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &counted{Conn: connection, open: &l.open}, nil
		}
		l.open.Add(-1)
		connection.Close()
	}
}

// A counted connection counts until it is closed.
type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}
