package stream

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream/socket"
)

// counters are those of a port, since the start of the process.
type counters struct {
	protocol, port string
	last           atomic.Uint64
	open           atomic.Int64
	refused        atomic.Int64
	passed         socket.Totals
	ended          [4]atomic.Int64
}

var statuses = [4]int{statusOK, statusBadRequest, statusFailed, statusBadGateway}

func (c *counters) end(status int) {
	for i, s := range statuses {
		if s == status {
			c.ended[i].Add(1)
		}
	}
}

// connection is the number of a new connection or session.
func (c *counters) connection() uint64 { return c.last.Add(1) }

// countersOf are those of a stream's port, which it keeps when it is closed and opened.
func (s *Server) countersOf(stream *model.Stream) *counters {
	c := s.metrics[stream.Name()]
	if c == nil {
		c = &counters{protocol: stream.Protocol, port: strconv.Itoa(int(stream.Port))}
		s.metrics[stream.Name()] = c
	}
	return c
}

var (
	labels   = []string{"protocol", "port"}
	openDesc = prometheus.NewDesc("headgate_stream_connections",
		"Number of open connections of a TCP service, or of sessions of a UDP service.", labels, nil)
	endedDesc = prometheus.NewDesc("headgate_stream_connections_total",
		"Number of connections of a TCP service, or of sessions of a UDP service, that have ended, by status: 200; 400 (no valid header of the PROXY protocol); "+
			"500 (no socket); 502 (no endpoint could be connected to).", append([]string{"status"}, labels...), nil)
	refusedDesc = prometheus.NewDesc("headgate_stream_refused_total",
		"Number of connections that were closed, and of datagrams that were dropped, because of limits.", labels, nil)
	bytesDesc = prometheus.NewDesc("headgate_stream_bytes_total",
		"Number of bytes that were received from clients and sent to them.", append([]string{"direction"}, labels...), nil)
)

// Describe and Collect make a Server a prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{openDesc, endedDesc, refusedDesc, bytesDesc} {
		to <- d
	}
}

// Collect has the metrics of each port that is or was open.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.metrics {
		count := func(d *prometheus.Desc, n int64, values ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append(values, c.protocol, c.port)...)
		}
		to <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(c.open.Load()), c.protocol, c.port)
		for i, status := range statuses {
			count(endedDesc, c.ended[i].Load(), strconv.Itoa(status))
		}
		count(refusedDesc, c.refused.Load())
		count(bytesDesc, c.passed.Received.Load(), "received")
		count(bytesDesc, c.passed.Sent.Load(), "sent")
	}
}
