package traffic

import (
	"cmp"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// chunk is the maximum number of series that Stream has at once in the form of Prometheus, which
// takes some 3 KB for each.
const chunk = 500

// Stream hands over all series, sorted, in parts of families. more is false for the first part
// of a family. A part is valid only during the call. Stream ends with the first error.
//
// The counts of a series are those of one moment within a family.
func (t *Table) Stream(take func(part *dto.MetricFamily, more bool) error) error {
	list := t.entries()
	pairs, slots := make([]pairs, min(chunk, len(list))), make([]slot, min(chunk, len(list)))
	for i := range t.families {
		f := &t.families[i]
		family := f.empty()
		more := false
		for part := range slices.Chunk(list, chunk) {
			family.Metric = t.fill(f, part, pairs, slots, family.Metric[:0])
			if len(family.Metric) == 0 {
				continue
			}
			if err := take(family, more); err != nil {
				return err
			}
			more = true
		}
	}
	return nil
}

// An entry is a series with its labels.
type entry struct {
	labels
	*series
}

// entries are all series, in the order of their labels.
func (t *Table) entries() []entry {
	t.mu.Lock()
	list := make([]entry, 0, len(t.series))
	for l, s := range t.series {
		list = append(list, entry{l, s})
	}
	t.mu.Unlock()
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.canary, b.canary), cmp.Compare(a.host, b.host), cmp.Compare(a.ingress, b.ingress),
			cmp.Compare(a.method, b.method), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.path, b.path),
			cmp.Compare(a.service, b.service), cmp.Compare(a.status, b.status))
	})
	return list
}

// empty is the family without series.
func (f *family) empty() *dto.MetricFamily {
	kind := dto.MetricType_COUNTER
	if f.bounds != nil {
		kind = dto.MetricType_HISTOGRAM
	}
	return &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &kind}
}

// fill appends the series of a family that have values, in slots.
func (t *Table) fill(f *family, list []entry, pairs []pairs, slots []slot, to []*dto.Metric) []*dto.Metric {
	for i, e := range list {
		s := &slots[i]
		s.metric.Label = pairs[i].set(t.settings, e.labels)
		// For one series at a time: changes must not wait for a scrape.
		t.mu.Lock()
		found := s.setValue(f, e.series)
		t.mu.Unlock()
		if found {
			to = append(to, &s.metric)
		}
	}
	return to
}

// A slot is the memory of one series in the form of Prometheus, whose every number and text is
// behind a pointer.
type slot struct {
	metric    dto.Metric
	counter   dto.Counter
	histogram dto.Histogram
	buckets   []dto.Bucket
	counts    []uint64
	count     uint64
	sum       float64
}

// labelNames are in the order of the alphabet, and of the values in pairs.set.
var labelNames = [11]string{
	"canary", "controller_class", "controller_namespace", "controller_pod", "host", "ingress", "method", "namespace", "path", "service", "status",
}

// pairs are the memory of a series' labels.
type pairs struct {
	list   []*dto.LabelPair
	pairs  [11]dto.LabelPair
	values [11]string
}

func (p *pairs) set(of Settings, l labels) []*dto.LabelPair {
	p.values = [11]string{l.canary, of.Class, of.Namespace, of.Pod, l.host, l.ingress, l.method, l.namespace, l.path, l.service, l.status}
	if p.list != nil {
		return p.list
	}
	p.list = make([]*dto.LabelPair, 0, len(p.pairs))
	for i := range p.pairs {
		if labelNames[i] != "host" || of.PerHost {
			p.pairs[i].Name, p.pairs[i].Value = &labelNames[i], &p.values[i]
			p.list = append(p.list, &p.pairs[i])
		}
	}
	return p.list
}

// setValue reports whether the series has a value in the family.
func (s *slot) setValue(f *family, of *series) bool {
	if f.bounds == nil {
		s.sum = float64(of.counts[f.offset])
		s.counter.Value, s.metric.Counter, s.metric.Histogram = &s.sum, &s.counter, nil
		return true
	}
	s.setBuckets(f.bounds)
	var examples []example
	if f.native == 0 {
		examples = of.examples
	}
	s.count, s.sum = 0, float64(of.counts[f.offset])/f.unit
	for i := range f.bounds {
		s.count += of.counts[f.offset+1+i]
		s.counts[i] = s.count
	}
	s.count += of.counts[f.offset+1+len(f.bounds)]
	if s.count == 0 {
		return false
	}
	s.setExamples(examples)
	h := &s.histogram
	h.SampleCount, h.SampleSum = &s.count, &s.sum
	h.Schema, h.ZeroThreshold, h.ZeroCount, h.PositiveSpan, h.PositiveDelta = nil, nil, nil, nil, nil
	if f.native >= 0 && of.native != nil {
		f.addNative(h, of.native[f.native], s.count, s.sum)
	}
	s.metric.Counter, s.metric.Histogram = nil, h
	return true
}

// setExamples adds examples to the buckets. The last bucket, without a bound, is only there if it
// has one.
func (s *slot) setExamples(list []example) {
	for i := range s.buckets {
		s.buckets[i].Exemplar = nil
	}
	for i, e := range list {
		s.buckets[i].Exemplar = e.exemplar()
	}
	if last := len(s.buckets) - 1; s.buckets[last].Exemplar != nil {
		s.buckets[last].UpperBound, s.buckets[last].CumulativeCount = proto.Float64(math.Inf(1)), &s.count
		s.histogram.Bucket = append(s.histogram.Bucket, &s.buckets[last])
	}
}

// setBuckets makes one bucket for each bound.
func (s *slot) setBuckets(bounds []float64) {
	if len(s.counts) != len(bounds) {
		s.buckets, s.counts = make([]dto.Bucket, len(bounds)+1), make([]uint64, len(bounds))
	}
	s.histogram.Bucket = s.histogram.Bucket[:0]
	for i := range bounds {
		s.buckets[i].CumulativeCount, s.buckets[i].UpperBound = &s.counts[i], &bounds[i]
		s.histogram.Bucket = append(s.histogram.Bucket, &s.buckets[i])
	}
}
