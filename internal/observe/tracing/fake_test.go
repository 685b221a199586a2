package tracing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/tracing"
	"github.com/headgate/headgate/internal/test/collectortest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A fake has an exporter that runs, with a data plane that keeps reports until they are deleted.
type fake struct {
	*tracing.Exporter
	t        testing.TB
	log      headgatetest.Log
	registry *prometheus.Registry
	// stop ends the exporter.
	stop context.CancelFunc

	mu      sync.Mutex
	reports map[string][]byte
	last    int
	asked   int
}

// testInterval is how often reports are fetched in tests.
const testInterval = 20 * time.Millisecond

// start runs an exporter until the test ends.
func start(t testing.TB) *fake {
	t.Helper()
	f := &fake{t: t, reports: map[string][]byte{}, registry: prometheus.NewRegistry()}
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(f.serve)}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })

	f.Exporter = tracing.New(tracing.Settings{Version: "1.2.3", Namespace: "ingress", Pod: "headgate-0", Log: slog.New(slog.NewTextHandler(&f.log, nil))})
	f.SetInterval(testInterval)
	f.registry.MustRegister(f.Exporter)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx, dataplane.New(socket).Spans)
	}()
	f.stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(f.stop)
	return f
}

// serve is the data plane's /v1/spans.
func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	seen, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/spans" {
		f.t.Errorf("%s %s, %v", r.Method, r.URL, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	for _, name := range strings.Fields(string(seen)) {
		delete(f.reports, name)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"reports": f.reports})
}

// report has a worker report, and returns when the report is deleted: it was read then.
func (f *fake) report(text string) {
	f.t.Helper()
	f.mu.Lock()
	f.last++
	name := fmt.Sprintf("r%d", f.last)
	f.reports[name] = []byte(text)
	f.mu.Unlock()
	headgatetest.Eventually(f.t, "the report is read", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.reports[name] == nil
	})
}

// add puts a report where it waits to be fetched.
func (f *fake) add(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	f.reports[fmt.Sprintf("r%d", f.last)] = []byte(text)
}

func (f *fake) fetches() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// spans is a report of requests without calls and tries, whose spans have these names.
func spans(names ...string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf(`{"trace":"4bf92f3577b34da6a3ce929d0e0e4736","id":"%016x","last":"00f067aa0ba902b7","parent":"b7ad6b7169203331","state":"vendor=1","name":%q,`+
			`"start":"1700000000000001","finish":250000,"facts":"502\n\n\n\n\nGET"}`, i+1, name)
	}
	return `{"dropped":0,"requests":[` + strings.Join(list, ",") + "]}"
}

// many is a report of n spans.
func many(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("span ", i)
	}
	return spans(names...)
}

// value is that of a metric with these labels.
func (f *fake) value(name, reason string) int {
	f.t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == reason) {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	f.t.Fatalf("no metric %s with reason %q", name, reason)
	return 0
}

func (f *fake) exported() int             { return f.value("headgate_spans_exported_total", "") }
func (f *fake) dropped(reason string) int { return f.value("headgate_spans_dropped_total", reason) }

// await waits until a collector has n spans, and returns them.
func await(t testing.TB, c *collectortest.Collector, n int) []collectortest.Span {
	t.Helper()
	headgatetest.Eventually(t, fmt.Sprintf("the collector has %d spans", n), func() bool { return len(c.Spans()) >= n })
	return c.Spans()
}

// to are settings with a collector.
func to(address string) model.Tracing {
	return model.Tracing{On: true, Collector: address, ServiceName: "edge", QueueSize: 2048, BatchSize: 512, Delay: time.Millisecond}
}
