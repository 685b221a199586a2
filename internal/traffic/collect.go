package traffic

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// natives is the number of histograms that may be native.
const natives = 6

// uncounted are the requests that are in no series.
var uncounted = prometheus.NewDesc("headgate_uncounted_requests_total",
	"Number of requests that no series of the request metrics counts, by reason: "+
		"ingress (no Ingress has their host, see --metrics-per-undefined-host) or replaced (their route was changed or deleted while they went on).",
	[]string{"reason"}, nil)

// unreadable are reports whose counts are lost.
var unreadable = prometheus.NewDesc("headgate_unreadable_request_counts_total",
	"Number of reports of NGINX's workers with counts of requests that could not be read.", nil, nil)

func (s *series) add(c counted, settings Settings) {
	for _, one := range c.cells {
		if one.place < len(s.counts) {
			s.counts[one.place] += one.count
		}
	}
	if settings.Schema == nil {
		return
	}
	if s.native == nil {
		s.native = make([]native, natives)
	}
	for _, one := range c.natives {
		if one.histogram < natives {
			s.native[one.histogram].add(*settings.Schema, one.key, one.count, settings.MaxBuckets)
		}
	}
}

// Describe implements prometheus.Collector.
func (t *Table) Describe(to chan<- *prometheus.Desc) {
	to <- uncounted
	to <- unreadable
	for _, f := range t.families {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (t *Table) Collect(to chan<- prometheus.Metric) {
	type entry struct {
		labels
		*series
	}
	t.mu.Lock()
	list := make([]entry, 0, len(t.series))
	for l, s := range t.series {
		list = append(list, entry{l, s})
	}
	withoutIngress, replaced, broken := t.withoutIngress, t.replaced, t.unreadable
	t.mu.Unlock()
	to <- prometheus.MustNewConstMetric(unreadable, prometheus.CounterValue, float64(broken))
	to <- prometheus.MustNewConstMetric(uncounted, prometheus.CounterValue, float64(withoutIngress), "ingress")
	to <- prometheus.MustNewConstMetric(uncounted, prometheus.CounterValue, float64(replaced), "replaced")
	for _, e := range list {
		// For one series at a time: changes must not wait for a scrape.
		t.mu.Lock()
		metrics := t.metricsOf(e.labels, e.series)
		t.mu.Unlock()
		for _, m := range metrics {
			to <- m
		}
	}
}

func (t *Table) metricsOf(l labels, s *series) []prometheus.Metric {
	pairs := t.pairs(l)
	list := make([]prometheus.Metric, 0, len(t.families))
	for _, f := range t.families {
		m := metric{desc: f.desc, value: dto.Metric{Label: pairs}}
		if f.bounds == nil {
			m.value.Counter = &dto.Counter{Value: pointer(float64(s.counts[f.offset]))}
		} else if m.value.Histogram = f.histogram(s); m.value.Histogram == nil {
			continue
		}
		list = append(list, &m)
	}
	return list
}

// histogram is that of a series, nil if it has no values.
func (f family) histogram(s *series) *dto.Histogram {
	buckets := make([]dto.Bucket, len(f.bounds))
	h := &dto.Histogram{Bucket: make([]*dto.Bucket, len(f.bounds))}
	var count uint64
	for i, bound := range f.bounds {
		count += s.counts[f.offset+1+i]
		buckets[i].CumulativeCount, buckets[i].UpperBound = pointer(count), pointer(bound)
		h.Bucket[i] = &buckets[i]
	}
	count += s.counts[f.offset+1+len(f.bounds)]
	if count == 0 {
		return nil
	}
	sum := float64(s.counts[f.offset]) / f.unit
	if f.native >= 0 && s.native != nil {
		f.addNative(h, s.native[f.native], count, sum)
	}
	h.SampleCount, h.SampleSum = &count, &sum
	return h
}

// addNative adds the buckets of a native histogram.
func (f family) addNative(h *dto.Histogram, n native, count uint64, sum float64) {
	made, err := prometheus.NewConstNativeHistogram(prometheus.NewDesc(f.name, "", nil, nil), count, sum, n.buckets, nil, n.zero, n.schema, zeroThreshold, time.Time{})
	if err != nil {
		return // The counts of a report that is broken: the other buckets are right.
	}
	var whole dto.Metric
	if err := made.Write(&whole); err != nil {
		return
	}
	with := whole.GetHistogram()
	with.Bucket = h.Bucket
	h.Schema, h.ZeroThreshold, h.ZeroCount = with.Schema, with.ZeroThreshold, with.ZeroCount
	h.PositiveSpan, h.PositiveDelta = with.PositiveSpan, with.PositiveDelta
}

// pairs are the labels of a series, in the order of the alphabet.
func (t *Table) pairs(l labels) []*dto.LabelPair {
	values := []struct{ name, value string }{
		{"canary", l.canary}, {"controller_class", t.settings.Class}, {"controller_namespace", t.settings.Namespace},
		{"controller_pod", t.settings.Pod}, {"host", l.host}, {"ingress", l.ingress}, {"method", l.method},
		{"namespace", l.namespace}, {"path", l.path}, {"service", l.service}, {"status", l.status},
	}
	pairs := make([]*dto.LabelPair, 0, len(values))
	for i := range values {
		if values[i].name != "host" || t.settings.PerHost {
			pairs = append(pairs, &dto.LabelPair{Name: &values[i].name, Value: &values[i].value})
		}
	}
	return pairs
}

// A metric is one sample of a family.
type metric struct {
	desc  *prometheus.Desc
	value dto.Metric
}

func (m *metric) Desc() *prometheus.Desc { return m.desc }

func (m *metric) Write(to *dto.Metric) error {
	to.Label, to.Counter, to.Histogram = m.value.Label, m.value.Counter, m.value.Histogram
	return nil
}

func pointer[T any](value T) *T { return &value }
