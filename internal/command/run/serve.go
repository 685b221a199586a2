package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/headgate/headgate/internal/command/run/edges"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/tracing"
)

// A listener serves a port until it is closed.
type listener interface{ Serve() error }

// A half is what has units served, by NGINX here or by edges.
type half interface {
	// Serving is closed when the first load is served.
	Serving() <-chan struct{}
	// Leave prepares for the end, which may take ShutdownTimeout.
	Leave(ctx context.Context, grace time.Duration)
	ShutdownTimeout() time.Duration
}

// A service is what runs in this process.
type service struct {
	half half
	// run serves until its context ends, or until an error that can't be retried.
	run       func(context.Context) error
	listeners []listener
	replica   *replica
	// facing is what faces clients; nil of a control.
	facing *facing
	// edges are those of a control; nil without it.
	edges   *edges.Edges
	stopAPI func()
}

// facing is what faces clients.
type facing struct {
	process *nginx.Process
	streams streams
	spans   *tracing.Exporter
}

// face makes what faces clients, with its metrics, and adds it to the settings of the half that has NGINX.
func (o program) face(s *edge.Settings) *facing {
	tcpAndUDP := o.tcpAndUDP(s.Metrics, s.Tracker, s.RunDir.HandedSocket(), s.Log)
	s.Traffic = o.traffic(s.Metrics, s.Tracker, s.Log)
	spans := o.newSpans(s.Metrics, s.Log)
	s.Streams, s.Passthrough, s.Tracing = tcpAndUDP, tcpAndUDP.tls.controlled(), spans
	return &facing{s.Process, tcpAndUDP, spans}
}

// leave lets connections end.
func (f *facing) leave(forceStop context.Context, s service, log *slog.Logger) error {
	if f == nil {
		return nil
	}
	closed := f.streams.leave(forceStop, s.half.ShutdownTimeout())
	err := stopNGINX(forceStop, f.process, s.half.ShutdownTimeout(), log)
	<-closed
	return err
}

// flush sends the last spans.
func (f *facing) flush(ctx context.Context) {
	if f != nil {
		f.spans.Flush(ctx)
	}
}

// serve runs until ctx ends, then shuts down: health checks fail and clients are
// asked to close connections, changes are applied throughout the grace period, and
// NGINX finishes its requests while the leader does its last work.
func (o program) serve(ctx context.Context, s service, log *slog.Logger) error {
	running, end := context.WithCancelCause(context.Background())
	defer end(nil)
	forceStop, stop := secondSignal()
	defer stop()
	for _, l := range s.listeners {
		go func() {
			if err := l.Serve(); err != nil {
				end(err)
			}
		}()
	}
	go func() {
		select {
		case <-s.half.Serving():
			log.Info("serving", o.served()...)
		case <-running.Done():
		}
	}()
	go func() {
		<-ctx.Done()
		log.Info("shutting down")
		s.half.Leave(forceStop, seconds(o.ShutdownGracePeriod))
		end(nil)
	}()
	if o.ManifestsDir == "" {
		limitGarbage()
	}
	go releaseMemory(running, s.half.Serving(), afterLoad)
	s.replica.run(s.half.Serving())
	err := s.run(running)
	if cause := context.Cause(running); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err != nil {
		// It failed without a signal to stop. It is restarted soon, with the same
		// addresses.
		s.replica.end()
		s.half.Leave(forceStop, 0)
	}
	limit, cancel := context.WithTimeout(forceStop, s.half.ShutdownTimeout()+stopMargin)
	defer cancel()
	left := s.replica.leave(limit)
	s.edges.Close()
	err = errors.Join(err, s.facing.leave(forceStop, s, log))
	<-left
	s.facing.flush(limit)
	// wait-shutdown waits for this.
	s.stopAPI()
	if err != nil {
		return err
	}
	pause(forceStop, seconds(o.PostShutdownGracePeriod))
	return nil
}

// served are the ports that are served, for the log.
func (o program) served() []any {
	if o.IsControl() {
		return []any{"edges", o.EdgeAddress, "healthz", o.HealthzPort}
	}
	return []any{"http", o.HTTPPort, "https", o.HTTPSPort, "healthz", o.HealthzPort}
}
