// Package metrics has the metrics of Headgate's own work. Metrics of requests are those of
// package traffic.
package metrics

import (
	"context"
	"time"

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
	HostsToBuild                                    prometheus.Gauge
}

// Workers are numbers that NGINX's workers share, by reason and namespace.
type Workers struct{ Refusals, Ejections, Uncounted map[string]map[string]int64 }

// OfWorkers is a collector of the numbers of requests that NGINX's workers refused because
// a namespace's time was up, of copies of requests that they dropped, of endpoints that
// they ejected, and of requests that they let pass a limit uncounted. read is called once for each scrape.
func OfWorkers(read func(context.Context) (Workers, error)) prometheus.Collector {
	labels := []string{"reason", "namespace"}
	return ofWorkers{
		read: read,
		refusals: prometheus.NewDesc("headgate_refusals_total",
			"Number of requests and TLS handshakes that were refused because a namespace took too much of a worker's time, by reason: "+
				"regex (its regular expressions were not tried) or decoding (a host or certificate that the worker did not hold); "+
				"or, with the reason mirror, copies of requests that were dropped because the namespace's mirrors are too slow; "+
				"or, with the reason retry, requests that were sent without the chance of a retry because the budget of the backend was spent. "+
				"The first 100 namespaces are counted by name, others as _others.", labels, nil),
		ejections: prometheus.NewDesc("headgate_endpoint_ejections_total",
			"Number of times that a worker ejected an endpoint, by reason: connect (no connection could be made) or failures (requests failed in a row). "+
				"The first 100 namespaces are counted by name, others as _others.", labels, nil),
		uncounted: prometheus.NewDesc("headgate_unlimited_requests_total",
			"Number of requests that a limit let pass without counting them, by reason: requests (limit-rps, limit-rpm), connections (limit-connections) or replicas (global-rate-limit), "+
				"because the namespace counts too many clients, or there is no memory for a further one. "+
				"The first 100 namespaces are counted by name, others as _others.", labels, nil),
	}
}

type ofWorkers struct {
	read                           func(context.Context) (Workers, error)
	refusals, ejections, uncounted *prometheus.Desc
}

func (w ofWorkers) Describe(to chan<- *prometheus.Desc) {
	to <- w.refusals
	to <- w.ejections
	to <- w.uncounted
}

func (w ofWorkers) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	workers, err := w.read(ctx)
	if err != nil {
		return // NGINX is being started or has ended.
	}
	for desc, counts := range map[*prometheus.Desc]map[string]map[string]int64{
		w.refusals: workers.Refusals, w.ejections: workers.Ejections, w.uncounted: workers.Uncounted,
	} {
		for reason, byNamespace := range counts {
			for namespace, count := range byNamespace {
				to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(count), reason, namespace)
			}
		}
	}
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
	return &Metrics{
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
