package health

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// someRequests are families of counters with two series, in parts of one.
type someRequests struct{ families []*dto.MetricFamily }

func (s someRequests) Stream(take func(*dto.MetricFamily, bool) error) error {
	for _, f := range s.families {
		for i, m := range f.Metric {
			part := &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Metric: []*dto.Metric{m}}
			if err := take(part, i > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestMetrics: parts make families with one head each, in text with and without compression,
// and the other format has them as a whole.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "b_total", Help: "Own."}))
	var requests someRequests
	for _, name := range []string{"a_requests", "c_requests"} {
		family := &dto.MetricFamily{Name: proto.String(name), Help: proto.String("Two\nlines."), Type: dto.MetricType_COUNTER.Enum()}
		for _, path := range []string{"/", "#\n# x"} {
			family.Metric = append(family.Metric, &dto.Metric{
				Label: []*dto.LabelPair{{Name: proto.String("path"), Value: proto.String(path)}}, Counter: &dto.Counter{Value: proto.Float64(7)},
			})
		}
		requests.families = append(requests.families, family)
	}
	const own = "# HELP b_total Own.\n# TYPE b_total counter\nb_total 0\n"
	of := func(name string) string {
		return strings.ReplaceAll("# HELP N Two\\nlines.\n# TYPE N counter\nN{path=\"/\"} 7\nN{path=\"#\\n# x\"} 7\n", "N", name)
	}
	want := own + of("a_requests") + of("c_requests")
	for _, encoding := range []string{"", "gzip, deflate"} {
		response := scrape(registry, requests, "", encoding)
		body := io.Reader(response.Body)
		if (response.Header().Get("Content-Encoding") == "gzip") != (encoding != "") {
			t.Errorf("%q: the header is %v", encoding, response.Header())
		} else if encoding != "" {
			var err error
			if body, err = gzip.NewReader(response.Body); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != want {
			t.Errorf("%q: %v\n%s\nwant:\n%s", encoding, err, text, want)
		}
		if got := response.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
			t.Errorf("Content-Type %s", got)
		}
	}
	response := scrape(registry, requests, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "")
	decoder := expfmt.NewDecoder(response.Body, expfmt.ResponseFormat(response.Header()))
	var got []string
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); err != nil {
			break
		}
		got = append(got, family.GetName())
		if n := len(family.GetMetric()); n != 2 && family.GetName() != "b_total" {
			t.Errorf("%s has %d series", family.GetName(), n)
		}
	}
	if !slices.Equal(got, []string{"b_total", "a_requests", "c_requests"}) {
		t.Errorf("the families are %q", got)
	}
}

// TestOpenMetrics: the series are called as in text, and buckets have examples.
func TestOpenMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "b_total", Help: "Own."}))
	label := func(name, value string) []*dto.LabelPair {
		return []*dto.LabelPair{{Name: proto.String(name), Value: proto.String(value)}}
	}
	requests := someRequests{[]*dto.MetricFamily{
		{Name: proto.String("a_requests"), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Label: label("path", "/v1.0"), Counter: &dto.Counter{Value: proto.Float64(7)}}}},
		{Name: proto.String("a_seconds"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Label: label("path", `le="1.0"} `), Histogram: &dto.Histogram{
			SampleCount: proto.Uint64(2), SampleSum: proto.Float64(2.5), Bucket: []*dto.Bucket{
				{UpperBound: proto.Float64(0.5), CumulativeCount: proto.Uint64(1)},
				{UpperBound: proto.Float64(1), CumulativeCount: proto.Uint64(1)},
				{UpperBound: proto.Float64(10), CumulativeCount: proto.Uint64(2), Exemplar: &dto.Exemplar{Label: label("trace_id", "0af7651916cd43dd8448eb211c80319c"), Value: proto.Float64(2)}},
			},
		}}}},
	}}
	const want = `# HELP b Own.
# TYPE b counter
b_total 0.0
# TYPE a_requests unknown
a_requests{path="/v1.0"} 7.0
# TYPE a_seconds histogram
a_seconds_bucket{path="le=\"1.0\"} ",le="0.5"} 1
a_seconds_bucket{path="le=\"1.0\"} ",le="1"} 1
a_seconds_bucket{path="le=\"1.0\"} ",le="10"} 2 # {trace_id="0af7651916cd43dd8448eb211c80319c"} 2.0
a_seconds_bucket{path="le=\"1.0\"} ",le="+Inf"} 2
a_seconds_sum{path="le=\"1.0\"} "} 2.5
a_seconds_count{path="le=\"1.0\"} "} 2
# EOF
`
	response := scrape(registry, requests, "application/openmetrics-text;version=1.0.0", "")
	if got := response.Body.String(); got != want || !strings.HasPrefix(response.Header().Get("Content-Type"), "application/openmetrics-text; version=1.0.0") {
		t.Errorf("%v\n%s\nwant:\n%s", response.Header(), got, want)
	}
}

func scrape(registry *prometheus.Registry, requests Requests, accept, encoding string) *httptest.ResponseRecorder {
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", encoding)
	recorder := httptest.NewRecorder()
	metricsHandler(registry, requests, slog.New(slog.DiscardHandler)).ServeHTTP(recorder, request)
	return recorder
}

// blocked are requests whose metrics come when they are released.
type blocked struct{ entered, release chan struct{} }

func (b blocked) Stream(func(*dto.MetricFamily, bool) error) error {
	b.entered <- struct{}{}
	<-b.release
	return nil
}

// TestScrapesAtOnce: there are a few, and others wait as long as their client does.
func TestScrapesAtOnce(t *testing.T) {
	t.Parallel()
	b := blocked{make(chan struct{}, scrapes+1), make(chan struct{})}
	handler := metricsHandler(prometheus.NewRegistry(), b, slog.New(slog.DiscardHandler))
	var group sync.WaitGroup
	for range scrapes {
		group.Go(func() {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		})
		<-b.entered
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	waits := httptest.NewRequestWithContext(gone, http.MethodGet, "/metrics", http.NoBody)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		handler.ServeHTTP(httptest.NewRecorder(), waits)
	}()
	select {
	case <-b.entered:
		t.Error("one more is answered")
	case <-ended:
	}
	close(b.release)
	group.Wait()
	<-ended
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if len(b.entered) != 1 {
		t.Error("no place was given back")
	}
}

// broken are requests whose metrics end with an error, after some were handed over.
type broken struct{ someRequests }

func (b broken) Stream(take func(*dto.MetricFamily, bool) error) error {
	return errors.Join(b.someRequests.Stream(take), errors.New("no more series"))
}

// TestFailures: a scrape that fails does not look like a complete one, and the log says why.
func TestFailures(t *testing.T) {
	t.Parallel()
	registry, twice := prometheus.NewRegistry(), prometheus.NewRegistry()
	desc := prometheus.NewDesc("a_total", "Twice the same.", nil, nil)
	twice.MustRegister(prometheus.CollectorFunc(func(to chan<- prometheus.Metric) {
		for range 2 {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, 1)
		}
	}))
	one := someRequests{[]*dto.MetricFamily{{
		Name: proto.String("b_requests"), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Counter: &dto.Counter{Value: proto.Float64(7)}}},
	}}}
	for _, c := range []struct {
		registry *prometheus.Registry
		requests Requests
		status   int
		logged   string
	}{
		{twice, one, 500, "metrics can't be served"},
		{registry, broken{one}, 0, "no more series"},
		{registry, one, 200, ""},
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			var log headgatetest.Log
			server := httptest.NewServer(metricsHandler(c.registry, c.requests, slog.New(slog.NewTextHandler(&log, nil))))
			request, err := http.NewRequest(http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept-Encoding", encoding)
			status := 0
			if response, err := server.Client().Do(request); err == nil {
				if _, err := io.ReadAll(response.Body); err == nil {
					status = response.StatusCode
				}
				response.Body.Close()
			}
			server.Close()
			if text := log.String(); status != c.status || !strings.Contains(text, c.logged) || (text != "") != (c.logged != "") {
				t.Errorf("%s: status %d, want %d; logged: %s", encoding, status, c.status, text)
			}
		}
	}
}
