// Package health serves /healthz and /metrics.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves the health port.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Listen opens the port. check returns why Headgate is not healthy, or nil if it
// is; path is the path of the health check, and timeout limits one. requests is nil if
// requests are not counted.
func Listen(address, path string, timeout time.Duration, check func(context.Context) error, registry *prometheus.Registry, requests Requests, log *slog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on the health port: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		if err := check(ctx); err != nil {
			http.Error(w, "not healthy: "+err.Error(), http.StatusInternalServerError)
			return
		}
		// Without a line break, as Kubernetes' own programs: probes may compare it.
		fmt.Fprint(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.InstrumentMetricHandler(registry, metricsHandler(registry, requests, log)))
	return &Server{listener: listener, server: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		// A scrape that is not read keeps its memory, and its place.
		WriteTimeout: 2 * time.Minute,
		IdleTimeout:  2 * time.Minute,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}, nil
}

// Serve serves until Close.
func (s *Server) Serve() error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the health port: %w", err)
	}
	return nil
}

// Close ends the server immediately.
func (s *Server) Close() error { return s.server.Close() }
