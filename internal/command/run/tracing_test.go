package run

import "testing"

// TestCollectorCapability: either variable of the environment names a collector, unless it has only spaces.
func TestCollectorCapability(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4317", 1},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317", 1},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", " ", 0},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://collector:4317", 0},
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
			t.Setenv(name, "")
		}
		t.Setenv(c.name, c.value)
		if got := collectorCapability(); len(got) != c.want {
			t.Errorf("%s=%q: %v", c.name, c.value, got)
		}
	}
}
