package main

import (
	"log/slog"

	"github.com/headgate/headgate/internal/metrics"
	"github.com/headgate/headgate/internal/tracing"
)

// newSpans is the exporter of spans, with its metrics.
func newSpans(m *metrics.Metrics, log *slog.Logger) *tracing.Exporter {
	pod := podOfEnvironment()
	e := tracing.New(tracing.Settings{Version: version, Namespace: pod.Namespace, Pod: pod.Name, Log: log})
	m.Registry.MustRegister(e)
	return e
}
