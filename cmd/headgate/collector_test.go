package main

import "testing"

// TestCollectorCapability: either variable of the environment names a collector.
func TestCollectorCapability(t *testing.T) {
	for name, want := range map[string]int{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": 1, "OTEL_EXPORTER_OTLP_ENDPOINT": 1, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": 0,
	} {
		got := collectorCapability(func(asked string) string {
			if asked == name {
				return "http://collector:4317"
			}
			return ""
		})
		if len(got) != want {
			t.Errorf("with %s: %v", name, got)
		}
	}
}
