package traffic

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// natives is the number of histograms that may be native.
const natives = 6

// uncounted are the requests that are in no series.
var uncounted = prometheus.NewDesc("headgate_uncounted_requests_total",
	"Number of requests that no series of the request metrics counts, by reason: "+
		"ingress (no Ingress has their host, see --metrics-per-undefined-host), replaced (their route was changed or deleted while they went on), or lost (their worker ended before it could report them).",
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
	for _, e := range c.examples {
		s.addExample(e, settings)
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

// firstTime is the place of the first bucket of times, behind the number of requests and their
// sum.
const firstTime = 2

// addExample keeps the last one of each bucket.
func (s *series) addExample(e example, settings Settings) {
	bucket := e.place - firstTime
	if bucket < 0 || bucket > len(settings.Buckets.Time) || !e.isValid() {
		return
	}
	if s.examples == nil {
		s.examples = make([]example, len(settings.Buckets.Time)+1)
	}
	if s.examples[bucket].at <= e.at {
		s.examples[bucket] = e
	}
}

// exemplar is the example in the form of Prometheus, nil if there is none.
func (e example) exemplar() *dto.Exemplar {
	if e.trace == "" {
		return nil
	}
	return &dto.Exemplar{
		Label: []*dto.LabelPair{{Name: proto.String("trace_id"), Value: &e.trace}}, Value: &e.seconds,
		Timestamp: timestamppb.New(time.UnixMilli(int64(e.at * 1000))),
	}
}

// Describe implements prometheus.Collector.
func (t *Table) Describe(to chan<- *prometheus.Desc) {
	to <- uncounted
	to <- unreadable
}

// Collect implements prometheus.Collector for what no series counts. Stream has the series.
func (t *Table) Collect(to chan<- prometheus.Metric) {
	t.mu.Lock()
	withoutIngress, replaced, lost, broken := t.withoutIngress, t.replaced, t.lost, t.unreadable
	t.mu.Unlock()
	to <- prometheus.MustNewConstMetric(unreadable, prometheus.CounterValue, float64(broken))
	to <- prometheus.MustNewConstMetric(uncounted, prometheus.CounterValue, float64(withoutIngress), "ingress")
	to <- prometheus.MustNewConstMetric(uncounted, prometheus.CounterValue, float64(replaced), "replaced")
	to <- prometheus.MustNewConstMetric(uncounted, prometheus.CounterValue, float64(lost), "lost")
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
