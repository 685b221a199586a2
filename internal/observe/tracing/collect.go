package tracing

import "github.com/prometheus/client_golang/prometheus"

// counts are the metrics of spans.
type counts struct {
	exported prometheus.Counter
	dropped  *prometheus.CounterVec
}

func newCounts() *counts {
	c := &counts{
		exported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "headgate_spans_exported_total", Help: "Number of spans that the collector took.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headgate_spans_dropped_total",
			Help: "Number of spans that were dropped, by reason: worker (too many in NGINX), queue (too many waited for their export), " +
				"export (the collector did not take them) or unreadable (they could not be read).",
		}, []string{"reason"}),
	}
	for _, reason := range []string{"worker", "queue", "export", "unreadable"} {
		c.dropped.WithLabelValues(reason)
	}
	return c
}

func (c *counts) drop(reason string, number int) {
	if number > 0 {
		c.dropped.WithLabelValues(reason).Add(float64(number))
	}
}

// Describe implements prometheus.Collector.
func (e *Exporter) Describe(to chan<- *prometheus.Desc) {
	e.counts.exported.Describe(to)
	e.counts.dropped.Describe(to)
}

// Collect implements prometheus.Collector.
func (e *Exporter) Collect(to chan<- prometheus.Metric) {
	e.counts.exported.Collect(to)
	e.counts.dropped.Collect(to)
}
