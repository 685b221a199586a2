package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Workers are numbers that NGINX's workers share, by reason and namespace.
type Workers struct {
	Refusals, Ejections, Uncounted map[string]map[string]int64
	// Times are in seconds.
	Times map[string]map[string]float64
	// Retries are by namespace.
	Retries map[string]int64
}

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
		times: prometheus.NewDesc("headgate_worker_seconds_total",
			"Processor time that workers took for a namespace, by reason: regex (its regular expressions) or decoding (its hosts and certificates, beyond what is free), in steps of 10 ms for each worker. "+
				"The first 200 pairs of reason and namespace are counted by name, others as _others.", labels, nil),
		retries: prometheus.NewDesc("headgate_retries_total",
			"Number of retries that were paid from the budget of their backend. The first 100 namespaces are counted by name, others as _others.", []string{"namespace"}, nil),
	}
}

type ofWorkers struct {
	read                           func(context.Context) (Workers, error)
	refusals, ejections, uncounted *prometheus.Desc
	times, retries                 *prometheus.Desc
}

func (w ofWorkers) Describe(to chan<- *prometheus.Desc) {
	to <- w.refusals
	to <- w.ejections
	to <- w.uncounted
	to <- w.times
	to <- w.retries
}

func (w ofWorkers) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	workers, err := w.read(ctx)
	if err != nil {
		return // NGINX is being started or has ended.
	}
	for reason, byNamespace := range workers.Times {
		for namespace, seconds := range byNamespace {
			to <- prometheus.MustNewConstMetric(w.times, prometheus.CounterValue, seconds, reason, namespace)
		}
	}
	for namespace, count := range workers.Retries {
		to <- prometheus.MustNewConstMetric(w.retries, prometheus.CounterValue, float64(count), namespace)
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
