package main

import "github.com/headgate/headgate/internal/feature"

// collectorCapability is what features can do if the environment names a collector for spans,
// by the variables of OpenTelemetry.
func collectorCapability(getenv func(string) string) []string {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if getenv(name) != "" {
			return []string{string(feature.TraceCollector)}
		}
	}
	return nil
}
