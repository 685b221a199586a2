package run

import (
	"log/slog"

	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/observe/traffic"
)

// traffic is the table of requests with its metrics, nil if they are not enabled.
func (o program) traffic(m *metrics.Metrics, findings *tracker.Tracker, log *slog.Logger) *traffic.Table {
	if !o.EnableMetrics {
		return nil
	}
	o.WarnMetrics(log)
	pod, settings := podOfEnvironment(), o.Traffic()
	settings.Namespace, settings.Pod, settings.Class = pod.Namespace, pod.Name, o.Objects.ControllerClass
	settings.Enter = findings.Update
	table := traffic.New(settings)
	m.Registry.MustRegister(table)
	return table
}
