package controller

import (
	"log/slog"
	"slices"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/metrics"
	"github.com/headgate/headgate/internal/store"
)

// findings are the problems of all units. Each is told once, when it comes,
// however many units have it and however often they are built.
type findings struct {
	log     *slog.Logger
	metrics *metrics.Metrics
	byUnit  map[store.Key][]finding.Finding
	count   map[finding.Finding]int
}

func newFindings(log *slog.Logger, m *metrics.Metrics) *findings {
	return &findings{log: log, metrics: m, byUnit: map[store.Key][]finding.Finding{}, count: map[finding.Finding]int{}}
}

// set replaces the findings of a unit.
func (f *findings) set(key store.Key, now []finding.Finding) {
	was := f.byUnit[key]
	if slices.Equal(was, now) {
		return
	}
	if len(now) == 0 {
		delete(f.byUnit, key)
	} else {
		f.byUnit[key] = now
	}
	for _, n := range now {
		if f.count[n]++; f.count[n] == 1 {
			f.log.Warn(n.Message, "object", n.Object, "field", n.Field, "code", n.Code, "effect", n.Effect)
			f.metrics.Findings.WithLabelValues(string(n.Code)).Inc()
		}
	}
	for _, w := range was {
		if f.count[w]--; f.count[w] == 0 {
			delete(f.count, w)
			f.metrics.Findings.WithLabelValues(string(w.Code)).Dec()
		}
	}
}
