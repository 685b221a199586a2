package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/source/check"
)

// maxServices is how many Services have a series of their own.
const maxServices = 1000

// Health is a collector of the state of health checks. A Service without checks has no series.
func Health(read func() check.State) prometheus.Collector {
	service := []string{"namespace", "service"}
	more := " The 1,000 Services with the most unhealthy endpoints are counted by name, others as _others."
	return health{
		read: read,
		checks: prometheus.NewDesc("headgate_health_checks_total",
			"Number of health checks of endpoints, by result: success or failure.", []string{"result"}, nil),
		checked: prometheus.NewDesc("headgate_checked_endpoints",
			"Number of endpoints of a Service that are checked (health-check)."+more, service, nil),
		unhealthy: prometheus.NewDesc("headgate_unhealthy_endpoints",
			"Number of endpoints of a Service whose health checks fail."+more, service, nil),
	}
}

type health struct {
	read                       func() check.State
	checks, checked, unhealthy *prometheus.Desc
}

func (h health) Describe(to chan<- *prometheus.Desc) {
	to <- h.checks
	to <- h.checked
	to <- h.unhealthy
}

func (h health) Collect(to chan<- prometheus.Metric) {
	state := h.read()
	to <- prometheus.MustNewConstMetric(h.checks, prometheus.CounterValue, float64(state.Succeeded), "success")
	to <- prometheus.MustNewConstMetric(h.checks, prometheus.CounterValue, float64(state.Failed), "failure")
	for _, s := range bounded(state.Services) {
		to <- prometheus.MustNewConstMetric(h.checked, prometheus.GaugeValue, float64(s.Checked), s.Namespace, s.Service)
		to <- prometheus.MustNewConstMetric(h.unhealthy, prometheus.GaugeValue, float64(s.Unhealthy), s.Namespace, s.Service)
	}
}

// bounded counts what exceeds maxServices as one.
func bounded(list []check.ServiceState) []check.ServiceState {
	if len(list) <= maxServices {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b check.ServiceState) int {
		return cmp.Or(cmp.Compare(b.Unhealthy, a.Unhealthy), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service))
	})
	others := check.ServiceState{Namespace: "_others", Service: "_others"}
	for _, s := range list[maxServices:] {
		others.Checked += s.Checked
		others.Unhealthy += s.Unhealthy
	}
	return append(list[:maxServices], others)
}
