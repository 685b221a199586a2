package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// A Start is what Headgate takes with many hosts, with some of what operators see. All are medians.
type Start struct {
	Name string `json:"name"`
	// Ready is the time from its start to its readiness.
	Ready float64 `json:"ready_ms"`
	// ControllerReady is the most resident memory of the controller until then, and ControllerUsed
	// what it has once every host had a request.
	ControllerReady int64 `json:"controller_ready_bytes"`
	ControllerUsed  int64 `json:"controller_used_bytes"`
	// WorkerIdle and WorkerUsed are a worker's private memory before and after that.
	WorkerIdle int64 `json:"worker_idle_bytes"`
	WorkerUsed int64 `json:"worker_used_bytes"`
}

// A startKind is a Headgate that is started.
type startKind struct {
	name                 string
	metrics, log, traces bool
}

var startKinds = []startKind{
	{name: "none"},
	{name: "request metrics", metrics: true},
	{name: "the access log", log: true},
	{name: "tracing, all requests", traces: true},
	{name: "all of them", metrics: true, log: true, traces: true},
}

// maxStarts is how often each is started, if there are so many rounds.
const maxStarts = 5

// measureStarts starts all kinds in turns.
func measureStarts(ctx context.Context, s *stage, n size) ([]Start, error) {
	collector, err := startCollector()
	if err != nil {
		return nil, err
	}
	defer collector.server.Close()
	places := make([]place, len(startKinds))
	for i, kind := range startKinds {
		if places[i], err = s.placeStart(fmt.Sprint("start-", i), kind, collector); err != nil {
			return nil, err
		}
	}
	all := make([][]Start, len(startKinds))
	for round := range min(n.rounds, maxStarts) {
		fmt.Fprintf(os.Stderr, "starts, round %d\n", round+1)
		for i, kind := range startKinds {
			one, err := s.measureStart(ctx, places[i], kind, collector)
			if err != nil {
				return nil, fmt.Errorf("start with %s: %w", kind.name, err)
			}
			all[i] = append(all[i], one)
		}
	}
	var results []Start
	for i, kind := range startKinds {
		median := func(of func(Start) float64) float64 {
			var values []float64
			for _, one := range all[i] {
				values = append(values, of(one))
			}
			return medianOf(values)
		}
		results = append(results, Start{
			Name: kind.name, Ready: median(func(s Start) float64 { return s.Ready }),
			ControllerReady: int64(median(func(s Start) float64 { return float64(s.ControllerReady) })),
			ControllerUsed:  int64(median(func(s Start) float64 { return float64(s.ControllerUsed) })),
			WorkerIdle:      int64(median(func(s Start) float64 { return float64(s.WorkerIdle) })),
			WorkerUsed:      int64(median(func(s Start) float64 { return float64(s.WorkerUsed) })),
		})
	}
	return results, nil
}

func (s *stage) placeStart(name string, kind startKind, c *collector) (place, error) {
	at, err := s.place(name)
	if err != nil {
		return at, err
	}
	further := []string{keepConnections}
	if kind.traces {
		further = append(further, `enable-opentelemetry: "true"`, `otlp-collector-host: "127.0.0.1"`,
			fmt.Sprintf(`otlp-collector-port: "%d"`, c.port), "otel-sampler: AlwaysOn")
	}
	return at, errors.Join(writeFolder(at.folder, hosts, s.backend, kind.log, exactRouting),
		os.WriteFile(filepath.Join(at.folder, "options.yaml"), []byte(configMap(kind.log, further...)), 0o644))
}

func (s *stage) measureStart(ctx context.Context, at place, kind startKind, c *collector) (one Start, err error) {
	defer func(arguments, environment []string) { s.arguments, s.environment = arguments, environment }(s.arguments, s.environment)
	s.environment = []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}
	if kind.metrics {
		s.arguments = slices.Concat(s.arguments, []string{"--enable-metrics", "--metrics-series-per-namespace", strconv.Itoa(2 * hosts)})
	}
	batches := c.batches.Load()
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return one, err
	}
	defer h.process.stop()
	pid := h.process.cmd.Process.Pid
	one.Ready = milliseconds(h.ready)
	if one.ControllerReady, err = status(pid, "VmHWM"); err != nil {
		return one, err
	}
	if one.WorkerIdle, err = privateMemory(h.worker); err != nil {
		return one, err
	}
	if err := h.touchAll(ctx, hosts); err != nil {
		return one, err
	}
	time.Sleep(reportTime)
	if one.ControllerUsed, err = status(pid, "VmRSS"); err != nil {
		return one, err
	}
	if one.WorkerUsed, err = privateMemory(h.worker); err != nil {
		return one, err
	}
	if exported := c.batches.Load() > batches; exported != kind.traces {
		return one, fmt.Errorf("traces %t, and spans were exported: %t", kind.traces, exported)
	}
	return one, nil
}

// A collector takes traces over HTTP.
type collector struct {
	server  *http.Server
	port    int
	batches atomic.Int64
}

func startCollector() (*collector, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{port: listener.Addr().(*net.TCPAddr).Port}
	c.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An empty response says that all were taken.
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			w.Header().Set("Content-Type", "application/x-protobuf")
			c.batches.Add(1)
		}
	})}
	go func() {
		// It ends when it is closed.
		_ = c.server.Serve(listener)
	}()
	return c, nil
}

func printStarts(w *tabwriter.Writer, starts []Start) {
	fmt.Fprintf(w, "\n%d hosts, with\tstart to ready\tcontroller, most until ready\twith all hosts served\tworker, private, before\twith all hosts served\n", hosts)
	for _, one := range starts {
		fmt.Fprintf(w, "%s\t%.0f ms\t%s\t%s\t%s\t%s\n", one.Name, one.Ready, mebibytes(one.ControllerReady), mebibytes(one.ControllerUsed), mebibytes(one.WorkerIdle), mebibytes(one.WorkerUsed))
	}
}
