package run

import (
	"log/slog"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracing"
)

// collectorCapability is what features can do if the environment names a collector for spans.
func collectorCapability() []string {
	if tracing.NamedByEnvironment() {
		return []string{string(feature.TraceCollector)}
	}
	return nil
}

// newSpans is the exporter of spans, with its metrics.
func (o program) newSpans(m *metrics.Metrics, log *slog.Logger) *tracing.Exporter {
	pod := podOfEnvironment()
	e := tracing.New(tracing.Settings{Version: o.build.Version, Namespace: pod.Namespace, Pod: pod.Name, Log: log})
	m.Registry.MustRegister(e)
	return e
}
