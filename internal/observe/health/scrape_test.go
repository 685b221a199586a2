package health

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/traffic"
)

const (
	acceptProtobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	acceptOpenMetrics = "application/openmetrics-text;version=1.0.0"
)

// manySeries is a table with that number of series, each with values in all families, and native
// histograms if there is a schema. It returns what a series takes.
func manySeries(n int, schema *int32) (*traffic.Table, int) {
	before := heap()
	table := traffic.New(traffic.Settings{PerHost: true, Budget: n, Buckets: traffic.DefaultBuckets(), Schema: schema, MaxBuckets: 100})
	host := &model.Host{Name: "a.test"}
	order := binary.NativeEndian
	for i := range n {
		path := fmt.Sprintf("/path-%d", i)
		host.Routes = append(host.Routes, model.Route{Kind: model.Prefix, Path: path, Backend: model.BackendKey("shop", "one", "80"), Origin: model.Origin{Namespace: "shop", Ingress: "web"}})
	}
	table.SetHost("a.test", host)
	for i := range n {
		data := order.AppendUint64(make([]byte, 8), math.Float64bits(1))
		labels := fmt.Sprintf(`{"unit":"a.test","host":"a.test","namespace":"shop","ingress":"web","service":"one","path":"/path-%d"}`, i)
		natives := 0
		if schema != nil {
			natives = 6
		}
		for _, number := range []int{len(labels), 86, natives, 0, 200, 2} {
			data = order.AppendUint32(data, uint32(number))
		}
		for place := range 86 {
			data = order.AppendUint64(order.AppendUint16(data, uint16(place)), math.Float64bits(1))
		}
		for histogram := range natives {
			// As many values as in the other buckets.
			values := 12.0
			if histogram >= 4 {
				values = 11
			}
			data = order.AppendUint64(order.AppendUint32(order.AppendUint16(data, uint16(histogram)), 3), math.Float64bits(values))
		}
		table.Add(map[string][]byte{fmt.Sprint("r", i): append(data, labels...)})
	}
	return table, int(heap()-before) / n
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// discard is a response that goes nowhere.
type discard struct {
	header http.Header
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

// TestScrapeGarbage: a scrape makes less memory than it writes, in each format.
func TestScrapeGarbage(t *testing.T) {
	const series = 5000
	schema := int32(3)
	for name, accept := range map[string]string{"text": "", "OpenMetrics": acceptOpenMetrics, "protobuf": acceptProtobuf} {
		table, _ := manySeries(series, nil)
		written, made := measureScrape(table, accept)
		t.Logf("%s: %d bytes written, %d made", name, written, made)
		// What is kept for the parts of a family is 15 MB, for any number of series.
		if limit := 20<<20 + 2*uint64(written); made > limit || written < 1000*series {
			t.Errorf("%s: %d bytes written, and %d made; want at most %d", name, written, made, limit)
		}
	}
	table, _ := manySeries(10, &schema)
	if written, _ := measureScrape(table, acceptProtobuf); written == 0 {
		t.Error("nothing is written of native histograms")
	}
}

func measureScrape(table *traffic.Table, accept string) (written int, made uint64) {
	handler := metricsHandler(prometheus.NewRegistry(), table, slog.New(slog.DiscardHandler))
	request := httptest.NewRequest("GET", "/metrics", io.Reader(nil))
	request.Header.Set("Accept", accept)
	response := &discard{header: http.Header{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	handler.ServeHTTP(response, request)
	runtime.ReadMemStats(&after)
	return response.bytes, after.TotalAlloc - before.TotalAlloc
}

// BenchmarkScrape prints what 100,000 series take (docs/metrics.md).
func BenchmarkScrape(b *testing.B) {
	schema := int32(3)
	for _, one := range []struct {
		name, accept string
		schema       *int32
	}{{"text", "", nil}, {"OpenMetrics", acceptOpenMetrics, nil}, {"protobuf", acceptProtobuf, nil}, {"native", acceptProtobuf, &schema}} {
		b.Run(one.name, func(b *testing.B) {
			table, size := manySeries(100_000, one.schema)
			written, made := 0, uint64(0)
			for b.Loop() {
				written, made = measureScrape(table, one.accept)
			}
			b.ReportMetric(float64(size), "B/series")
			b.ReportMetric(float64(written)/1e6, "MB-written")
			b.ReportMetric(float64(made)/1e6, "MB-made")
		})
	}
}
