package traffic_test

import (
	"fmt"
	"io"
	"maps"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/traffic"
)

// manySeries is a table of that number of series, each with values in all families.
func manySeries(n int) *traffic.Table {
	s := settings()
	s.Buckets, s.Budget = traffic.DefaultBuckets(), n
	table := traffic.New(s)
	h := &model.Host{Name: "a.test"}
	list := make([]one, n)
	cells := map[int]float64{}
	for place := range 90 {
		cells[place] = 1
	}
	for i := range n {
		path := fmt.Sprintf("/path-%d", i)
		h.Routes = append(h.Routes, host(path).Routes...)
		list[i] = one{labelsOf(path), 200, 2, cells, nil}
	}
	table.SetHost("a.test", h)
	table.Add(map[string][]byte{"r": report(0, list...)})
	return table
}

// TestStream: the parts have the same series as Gather, in the same order, with the same
// values, however many parts there are.
func TestStream(t *testing.T) {
	table := manySeries(1201)
	whole, err := table.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, f := range whole {
		want[f.GetName()] = fmt.Sprint(f.GetHelp(), f.GetType(), f.GetMetric())
	}
	parts := 0
	series := map[string][]*dto.Metric{}
	err = table.Stream(func(f *dto.MetricFamily, more bool) error {
		if parts++; more != (len(series[f.GetName()]) > 0) {
			t.Errorf("%s: more is %v", f.GetName(), more)
		}
		for _, m := range f.GetMetric() {
			series[f.GetName()] = append(series[f.GetName()], proto.Clone(m).(*dto.Metric))
		}
		got[f.GetName()] = fmt.Sprint(f.GetHelp(), f.GetType(), series[f.GetName()])
		return nil
	})
	if err != nil || parts != 3*len(whole) || len(whole) != 8 || !maps.Equal(got, want) {
		t.Errorf("%d parts of %d families, %v", parts, len(whole), err)
	}
	// Ended by the first error.
	calls := 0
	if err := table.Stream(func(*dto.MetricFamily, bool) error { calls++; return io.EOF }); err != io.EOF || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// BenchmarkStream is one scrape of a table of 100,000 series, without the text.
func BenchmarkStream(b *testing.B) {
	table := manySeries(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := table.Stream(func(*dto.MetricFamily, bool) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGather is the same with all families at once.
func BenchmarkGather(b *testing.B) {
	table := manySeries(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := table.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
