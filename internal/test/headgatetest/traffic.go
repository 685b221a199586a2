package headgatetest

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
)

// Traffic are the usual settings for counting requests.
func Traffic() *traffic.Settings {
	return &traffic.Settings{
		Class: "k8s.io/ingress-nginx", PerHost: true, Buckets: traffic.DefaultBuckets(), Budget: traffic.DefaultBudget,
	}
}

// traffic is the table of a test's requests.
func (g *Instance) traffic(o Options, findings *tracker.Tracker) *traffic.Table {
	if o.Traffic == nil {
		return nil
	}
	settings := *o.Traffic
	settings.Enter = findings.Update
	g.table = traffic.New(settings)
	g.Metrics.Registry.MustRegister(g.table)
	return g.table
}

// Gather returns all metrics, with those of requests.
func (g *Instance) Gather() ([]*dto.MetricFamily, error) {
	gatherers := prometheus.Gatherers{g.Metrics.Registry}
	if g.table != nil {
		gatherers = append(gatherers, Series(g.table))
	}
	return gatherers.Gather()
}

// Series gathers all series of a table.
func Series(table *traffic.Table) prometheus.Gatherer {
	return prometheus.GathererFunc(func() (families []*dto.MetricFamily, err error) {
		err = table.Stream(func(part *dto.MetricFamily, more bool) error {
			part = proto.CloneOf(part)
			if more {
				last := families[len(families)-1]
				last.Metric = append(last.Metric, part.GetMetric()...)
			} else {
				families = append(families, part)
			}
			return nil
		})
		return families, err
	})
}
