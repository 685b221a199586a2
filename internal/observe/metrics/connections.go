package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Connections are NGINX's numbers of connections and requests.
type Connections struct {
	Accepted, Handled, Requests       uint64
	Active, Reading, Writing, Waiting uint64
}

// connections asks NGINX once for each scrape.
type connections struct {
	read                  func(context.Context) (Connections, error)
	total, requests, open *prometheus.Desc
}

func newConnections(read func(context.Context) (Connections, error)) connections {
	state := []string{"state"}
	return connections{
		read: read,
		total: prometheus.NewDesc(prefix+"nginx_process_connections_total",
			"Number of connections of clients since NGINX was started, by state: accepted or handled.", state, nil),
		requests: prometheus.NewDesc(prefix+"nginx_process_requests_total",
			"Number of requests since NGINX was started, with those of the controller.", nil, nil),
		open: prometheus.NewDesc(prefix+"nginx_process_connections",
			"Number of open connections of clients, by state: active (all of them), reading, writing or waiting.", state, nil),
	}
}

// Describe implements prometheus.Collector.
func (c connections) Describe(to chan<- *prometheus.Desc) {
	to <- c.total
	to <- c.requests
	to <- c.open
}

// Collect implements prometheus.Collector.
func (c connections) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n, err := c.read(ctx)
	if err != nil {
		return // NGINX is being started or has ended.
	}
	to <- prometheus.MustNewConstMetric(c.requests, prometheus.CounterValue, float64(n.Requests))
	for state, value := range map[string]uint64{"accepted": n.Accepted, "handled": n.Handled} {
		to <- prometheus.MustNewConstMetric(c.total, prometheus.CounterValue, float64(value), state)
	}
	for state, value := range map[string]uint64{"active": n.Active, "reading": n.Reading, "writing": n.Writing, "waiting": n.Waiting} {
		to <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(value), state)
	}
}
