// Package profiler serves the profiles of the Go runtime, for debugging.
//
// It must not know what the program does.
package profiler

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// headerTimeout limits the time for the head of a request. A profile itself takes as long
// as the client asks for.
const headerTimeout = 10 * time.Second

// A Server serves profiles at /debug/pprof/, and nothing else.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Listen opens an address. The error is that of the system, without context.
func Listen(address string, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return &Server{listener: listener, server: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}, nil
}

// Serve serves until Close. It may be called on nil, which serves nothing.
func (s *Server) Serve() error {
	if s == nil {
		return nil
	}
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiles: %w", err)
	}
	return nil
}

// Close ends the server immediately. It may be called on nil.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	return s.server.Close()
}
