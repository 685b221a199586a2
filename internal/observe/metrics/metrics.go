// Package metrics has the metrics of Headgate's own work. Metrics of requests are those of
// package traffic.
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
	ReloadsHeldBack                                 *prometheus.CounterVec
	Findings, Units, Memory                         *prometheus.GaugeVec
	NginxConfBytes                                  prometheus.Gauge
	WaitingHosts, OldWorkers, OldGenerations        prometheus.Gauge
	HostsToBuild, Generation, Profiles              prometheus.Gauge
	ReloadReasons                                   *prometheus.CounterVec
	BuildDuration, Propagation                      *prometheus.HistogramVec
	PushBytes                                       prometheus.Histogram
}

// New creates and registers the metrics.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	add := promauto.With(registry)
	counter := func(name, help string) prometheus.Counter {
		return add.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return add.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return add.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return add.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histograms := func(name, help, label string, buckets []float64) *prometheus.HistogramVec {
		return add.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
	}
	return &Metrics{
		ReloadReasons: counters("headgate_reload_reasons_total", "Number of reloads of NGINX, by reason: profile (a new profile), default (another default profile), handshakes (the first host with TLS settings of its own), "+
			"memory (larger shared memory) or settings (others of the process). A reload can have more than one.", "reason"),
		Generation: gauge("headgate_nginx_generation", "Number of the configuration that NGINX runs with; 1 is the first one."),
		Profiles:   gauge("headgate_profiles", "Number of profiles in nginx.conf. There are 200 at most."),
		BuildDuration: histograms("headgate_build_duration_seconds", "Time to build a unit.", "kind",
			[]float64{0.00001, 0.0001, 0.001, 0.01, 0.1, 1, 10}),
		Propagation: histograms("headgate_propagation_seconds", "Time from the arrival of a change of an object until it is applied, by kind of object. "+
			"The first load does not count, nor a change that affects nothing. Changes of hosts that wait for a reload which is held back, or because they take long to build, count as applied.", "kind",
			[]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}),
		PushBytes: add.NewHistogram(prometheus.HistogramOpts{
			Name: "headgate_push_bytes", Help: "Size in bytes of the units that were pushed to NGINX at once.",
			Buckets: prometheus.ExponentialBuckets(256, 4, 10),
		}),
		Registry:        registry,
		Builds:          counters("headgate_builds_total", "Number of units built.", "kind"),
		Pushed:          counters("headgate_pushed_units_total", "Number of units pushed to NGINX, deletions included.", "kind"),
		PushFailures:    counter("headgate_push_failures_total", "Number of pushes that failed and were retried."),
		Reloads:         counter("headgate_reloads_total", "Number of reloads of NGINX."),
		ReloadFailures:  counter("headgate_reload_failures_total", "Number of configurations that NGINX rejected."),
		ReloadsHeldBack: counters("headgate_reloads_held_back_total", "Number of reloads for Ingresses that were held back, by reason: rate or generations.", "by"),
		WaitingHosts:    gauge("headgate_waiting_hosts", "Number of hosts that wait for a reload. Most are served with stricter static settings meanwhile."),
		HostsToBuild:    gauge("headgate_hosts_to_build", "Number of hosts whose changes are not applied yet, since other hosts come first or since the host takes long to build."),
		OldWorkers:      gauge("headgate_nginx_old_workers", "Number of worker processes of earlier reloads that still serve connections."),
		OldGenerations:  gauge("headgate_nginx_old_generations", "Number of earlier reloads whose workers still serve connections."),
		Restarts:        counter("headgate_nginx_restarts_total", "Number of times that NGINX died and was restarted."),
		Findings:        gauges("headgate_findings", "Number of current findings.", "code"),
		Events:          counters("headgate_events_total", "Number of Kubernetes Events, by result.", "result"),
		Units:           gauges("headgate_units", "Number of units that are served.", "kind"),
		NginxConfBytes:  gauge("headgate_nginx_conf_bytes", "Size of nginx.conf in bytes."),
		Memory:          gauges("headgate_shared_memory_bytes", "Shared memory of NGINX in bytes.", "dictionary", "state"),
	}
}
