package headgatetest

import (
	"github.com/headgate/headgate/internal/tracker"
	"github.com/headgate/headgate/internal/traffic"
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
	table := traffic.New(settings)
	g.Metrics.Registry.MustRegister(table)
	return table
}
