package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// A tracedKind is a kind of request with tracing on: what the sampler is, and what the client sends.
type tracedKind struct{ name, sampler, ratio, header string }

// tracedKinds are counted by a Headgate each.
var tracedKinds = []tracedKind{
	{"tracing, 1 % of the requests", "TraceIdRatioBased", "0.01", ""},
	{"tracing, all requests", "AlwaysOn", "1", ""},
	{"tracing, the client does not sample", "AlwaysOn", "1", "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"},
}

func tracingKinds() []requestKind {
	var kinds []requestKind
	for _, one := range tracedKinds {
		kind := requestKind{name: one.name, host: always(hostName(5)), feature: true}
		if one.header != "" {
			kind.headers = []string{one.header}
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// placeTraced writes the folder of a Headgate with tracing. Spans get no further than its queue: no collector
// is at the port.
func (s *stage) placeTraced(name string, kind tracedKind, count int) (place, error) {
	at, err := s.place(name)
	if err != nil {
		return at, err
	}
	options := configMap(false, keepConnections, `enable-opentelemetry: "true"`, `otlp-collector-host: "127.0.0.1"`, `otlp-collector-port: "1"`,
		"otel-sampler: "+kind.sampler, `otel-sampler-ratio: "`+kind.ratio+`"`)
	return at, errors.Join(writeFolder(at.folder, count, s.backend, false, exactRouting),
		os.WriteFile(filepath.Join(at.folder, "options.yaml"), []byte(options), 0o644))
}

// countTracing counts requests with tracing.
func (s *stage) countTracing(ctx context.Context, name, profiles string, counts map[string]float64) error {
	for i, kind := range tracingKinds() {
		at, err := s.placeTraced(name+"-"+string(rune('a'+i)), tracedKinds[i], turnedHosts)
		if err != nil {
			return err
		}
		c, stop, err := s.startCounter(ctx, at)
		if err != nil {
			return err
		}
		c.profiles = profiles
		err = c.countAll([]requestKind{kind}, counts)
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// compareTracing compares what tracing adds to requests of one host with requests by hand.
func (s *stage) compareTracing(ctx context.Context, both cpuSides) ([]comparison, error) {
	var rows []comparison
	for i, budget := range []float64{maxTracing, 0} {
		kind := tracedKinds[i]
		at, err := s.placeTraced("headgate-traced-"+string(rune('a'+i)), kind, hosts)
		if err != nil {
			return nil, err
		}
		h, err := s.startHeadgate(ctx, at)
		if err != nil {
			return nil, err
		}
		traced := &side{name: "headgate, " + kind.name, instance: h.instance, host: middle}
		rows = append(rows, comparison{kind.name + ": what it adds", both.static, beyond(traced, both.product), budget})
	}
	return rows, nil
}
