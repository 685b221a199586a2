// Package metrics holds what Headgate counts of its own work. Requests are
// counted elsewhere.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are the controller's own. All names begin with headgate_.
type Metrics struct {
	// Registry has all of them, and those of the Go runtime and the process.
	Registry *prometheus.Registry

	// Builds counts units that were built, by kind.
	Builds *prometheus.CounterVec
	// Pushed counts units that were pushed, by kind; a deletion counts too.
	Pushed *prometheus.CounterVec
	// PushFailures counts pushes that failed and were tried again.
	PushFailures prometheus.Counter
	// Reloads counts reloads of NGINX.
	Reloads prometheus.Counter
	// ReloadFailures counts configurations that NGINX refused.
	ReloadFailures prometheus.Counter
	// Restarts counts how often NGINX died and was started anew.
	Restarts prometheus.Counter
	// Findings are the problems that objects have now, by code.
	Findings *prometheus.GaugeVec
	// Events counts Kubernetes Events by what became of them.
	Events *prometheus.CounterVec
	// Units are the units that are served, by kind.
	Units *prometheus.GaugeVec
	// NginxConfBytes is the size of nginx.conf.
	NginxConfBytes prometheus.Gauge
	// Memory is the shared memory, by dictionary and state (used, free).
	Memory *prometheus.GaugeVec
}

// New makes the metrics and registers them.
func New() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		Registry:       prometheus.NewRegistry(),
		Builds:         counters("headgate_builds_total", "Units that were built.", "kind"),
		Pushed:         counters("headgate_pushed_units_total", "Units that were pushed to NGINX or deleted there.", "kind"),
		PushFailures:   counter("headgate_push_failures_total", "Pushes that failed and were tried again."),
		Reloads:        counter("headgate_reloads_total", "Reloads of NGINX."),
		ReloadFailures: counter("headgate_reload_failures_total", "Configurations that NGINX refused."),
		Restarts:       counter("headgate_nginx_restarts_total", "How often NGINX died and was started anew."),
		Findings:       gauges("headgate_findings", "Problems that objects have now.", "code"),
		Events:         counters("headgate_events_total", "Kubernetes Events by what became of them.", "result"),
		Units:          gauges("headgate_units", "Units that are served.", "kind"),
		NginxConfBytes: prometheus.NewGauge(prometheus.GaugeOpts{Name: "headgate_nginx_conf_bytes", Help: "Size of nginx.conf."}),
		Memory:         gauges("headgate_shared_memory_bytes", "Shared memory of NGINX.", "dictionary", "state"),
	}
	m.Registry.MustRegister(
		m.Builds, m.Pushed, m.PushFailures, m.Reloads, m.ReloadFailures, m.Restarts, m.Findings, m.Events, m.Units,
		m.NginxConfBytes, m.Memory,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}
