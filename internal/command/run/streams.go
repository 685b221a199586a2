package run

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/linequeue"
	"github.com/headgate/headgate/internal/observe/logtarget"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/stream"
)

// streams serve TCP and UDP services.
type streams struct {
	*stream.Server
	lines *linequeue.Writer
	tls   tlsPassthrough
}

// A streamPort is the owner of findings about a port that can't be opened.
type streamPort string

// tcpAndUDP makes the server of TCP and UDP services and of TLS passthrough, with its metrics.
func (o program) tcpAndUDP(m *metrics.Metrics, findings *tracker.Tracker, socket string, log *slog.Logger) streams {
	s := newStreams(findings, log)
	s.tls = o.newPassthrough(s, socket)
	m.Registry.MustRegister(s, s.dropped())
	return s
}

func newStreams(findings *tracker.Tracker, log *slog.Logger) streams {
	target := logtarget.New(os.Stdout)
	lines := linequeue.New(target)
	return streams{lines: lines, Server: stream.New(stream.Settings{
		AccessLog: lines, Log: log,
		LogTo: func(name string) {
			if err := target.Set(name); err != nil {
				log.Warn("the access log of TCP and UDP services is on standard output", "error", err)
			}
		},
		Problem: func(s model.Stream, err error) {
			part := tracker.Part{Owner: streamPort(s.Name())}
			if err != nil {
				part.Findings = []finding.Finding{{
					Object: s.Object, Field: s.Field, Code: finding.UnavailablePort, Message: unavailable(s, err),
					Effect: "the port is not open; opening it is tried again",
				}}
			}
			findings.Update([]tracker.Part{part})
		},
	})}
}

// dropped counts the lines of the access log that found no room.
func (s streams) dropped() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "headgate_stream_log_lines_dropped_total", Help: "Number of lines of the access log of TCP and UDP services that were dropped, since standard output was not read.",
	}, func() float64 { return float64(s.lines.Dropped()) })
}

// unavailable says why a port can't be opened.
func unavailable(s model.Stream, err error) string {
	if s.Protocol == model.TCP {
		return nginx.ExplainPort(netip.AddrPortFrom(netip.IPv4Unspecified(), s.Port), err).Error()
	}
	switch port := strconv.Itoa(int(s.Port)); {
	case errors.Is(err, syscall.EADDRINUSE):
		return "UDP port " + port + " is in use"
	case errors.Is(err, syscall.EACCES):
		return "can't listen on UDP port " + port + ": privileged ports need root or CAP_NET_BIND_SERVICE"
	}
	return err.Error()
}

// leave begins to let connections end, as NGINX does with its own. They are cut
// after limit, or when forceStop ends. done is closed after that.
func (s streams) leave(forceStop context.Context, limit time.Duration) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(forceStop, limit)
		defer cancel()
		s.Shutdown(ctx)
		s.lines.Flush(LogTimeout)
	}()
	return ended
}
