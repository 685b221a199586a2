// Package metrics has the metrics of Headgate's own work. Metrics of requests are
// elsewhere.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the controller's metrics. Their names begin with headgate_. New has
// what each of them shows, with its labels.
type Metrics struct {
	// Registry has all of them, and those of the Go runtime and the process.
	Registry *prometheus.Registry

	Builds, Pushed, Events                          *prometheus.CounterVec
	PushFailures, Reloads, ReloadFailures, Restarts prometheus.Counter
	Findings, Units, Memory                         *prometheus.GaugeVec
	NginxConfBytes                                  prometheus.Gauge
}

// New creates and registers the metrics.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	add := promauto.With(registry)
	counter := func(name, help string) prometheus.Counter {
		return add.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return add.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return add.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		Registry:       registry,
		Builds:         counters("headgate_builds_total", "Number of units built.", "kind"),
		Pushed:         counters("headgate_pushed_units_total", "Number of units pushed to NGINX, deletions included.", "kind"),
		PushFailures:   counter("headgate_push_failures_total", "Number of pushes that failed and were retried."),
		Reloads:        counter("headgate_reloads_total", "Number of reloads of NGINX."),
		ReloadFailures: counter("headgate_reload_failures_total", "Number of configurations that NGINX rejected."),
		Restarts:       counter("headgate_nginx_restarts_total", "Number of times that NGINX died and was restarted."),
		Findings:       gauges("headgate_findings", "Number of current findings.", "code"),
		Events:         counters("headgate_events_total", "Number of Kubernetes Events, by result.", "result"),
		Units:          gauges("headgate_units", "Number of units that are served.", "kind"),
		NginxConfBytes: add.NewGauge(prometheus.GaugeOpts{Name: "headgate_nginx_conf_bytes", Help: "Size of nginx.conf in bytes."}),
		Memory:         gauges("headgate_shared_memory_bytes", "Shared memory of NGINX in bytes.", "dictionary", "state"),
	}
}
