package traffic_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/traffic"
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

// TestStream: each family has all series once, in the order of their labels and with their values,
// in parts.
func TestStream(t *testing.T) {
	const number = 1201
	table := manySeries(number)
	parts := 0
	paths, counts := map[string][]string{}, map[string]uint64{}
	err := table.Stream(func(f *dto.MetricFamily, more bool) error {
		name := f.GetName()
		if parts++; more != (len(paths[name]) > 0) {
			t.Errorf("%s: more is %v", name, more)
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "path" {
					paths[name] = append(paths[name], label.GetValue())
				}
			}
			counts[name] += uint64(m.GetCounter().GetValue()) + m.GetHistogram().GetSampleCount()
		}
		return nil
	})
	if err != nil || parts != 3*len(paths) || len(paths) != 8 {
		t.Errorf("%d parts of %d families, %v", parts, len(paths), err)
	}
	buckets := traffic.DefaultBuckets()
	for name, list := range paths {
		want := uint64(1)
		switch {
		case strings.HasSuffix(name, "_seconds"):
			want = uint64(len(buckets.Time) + 1)
		case strings.HasSuffix(name, "_size"):
			want = uint64(len(buckets.Length) + 1)
		case strings.HasSuffix(name, "bytes_sent"):
			want = uint64(len(buckets.Size) + 1)
		}
		if n := len(slices.Compact(slices.Clone(list))); n != number || !slices.IsSorted(list) || counts[name] != want*number {
			t.Errorf("%s: %d series with %d requests, want %d with %d, sorted", name, n, counts[name], number, want*number)
		}
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
