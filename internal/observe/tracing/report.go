package tracing

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// Spans are what a report of a worker says.
type Spans struct {
	Spans []tracetest.SpanStub
	// Dropped is the number of spans that found no room in the worker, and Unreadable that of
	// requests that could not be read.
	Dropped, Unreadable uint64
}

// A report is what a worker has to say since its last one: lua/headgate/span_report.lua.
type report struct {
	Dropped  uint64            `json:"dropped"`
	Requests []json.RawMessage `json:"requests"`
}

// A request is one that is over and sampled: lua/headgate/span.lua. Times but Start are in microseconds
// from there.
type request struct {
	Trace string `json:"trace"`
	ID    string `json:"id"`
	// Last is the span of the last try of a backend.
	Last string `json:"last"`
	// Parent is the span of the client, empty if it sent none.
	Parent string `json:"parent"`
	State  string `json:"state"`
	// Start is in microseconds since 1970.
	Start  string    `json:"start"`
	Finish float64   `json:"finish"`
	Name   string    `json:"name"`
	Path   string    `json:"path"`
	Scheme string    `json:"scheme"`
	Route  route     `json:"route"`
	Tries  []float64 `json:"tries"`
	Calls  []call    `json:"calls"`
	Facts  string    `json:"facts"`
}

// A route is what matched a request.
type route struct {
	Path      string `json:"path"`
	Namespace string `json:"namespace"`
	Ingress   string `json:"ingress"`
	Service   string `json:"service"`
}

// A call is one of an auth service.
type call struct {
	ID     string   `json:"id"`
	Method string   `json:"method"`
	Server string   `json:"server"`
	Start  float64  `json:"start"`
	Finish *float64 `json:"finish"`
	Status int      `json:"status"`
}

// facts are what NGINX's variables say, in the order of $hg_span.
type facts struct {
	status, upstreams, statuses, times, connects, method, protocol, client, peer, host, httpHost, requestID, userAgent, query string
}

// read splits the variable. What is missing was cut off.
func (f *facts) read(text string) {
	to := []*string{
		&f.status, &f.upstreams, &f.statuses, &f.times, &f.connects, &f.method, &f.protocol, &f.client, &f.peer, &f.host, &f.httpHost,
		&f.requestID, &f.userAgent, &f.query,
	}
	for i, value := range strings.SplitN(text, "\n", len(to)) {
		*to[i] = value
	}
}

// Read makes the spans of a report.
func Read(data []byte) (Spans, error) {
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return Spans{}, fmt.Errorf("decode a report of spans: %w", err)
	}
	all := Spans{Dropped: r.Dropped}
	for _, raw := range r.Requests {
		spans, err := readRequest(raw)
		if err != nil {
			all.Unreadable++
			continue
		}
		all.Spans = append(all.Spans, spans...)
	}
	return all, nil
}

// readRequest makes the spans of a request. encoding/json replaces invalid UTF-8.
func readRequest(data []byte) ([]tracetest.SpanStub, error) {
	var r request
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("decode a request: %w", err)
	}
	made := maker{request: r}
	made.facts.read(r.Facts)
	if err := made.readContexts(); err != nil {
		return nil, err
	}
	start, err := strconv.ParseInt(r.Start, 10, 64)
	// OTLP has nanoseconds in 64 bits.
	if err != nil || start <= 0 || start > maxMicroseconds {
		return nil, errors.New("read the start: not a number of microseconds since 1970")
	}
	made.start = time.UnixMicro(start)
	made.addServer()
	if err := made.addCalls(); err != nil {
		return nil, err
	}
	made.addTries()
	return made.spans, nil
}

// readContexts reads the ids.
func (m *maker) readContexts() error {
	traceID, err := trace.TraceIDFromHex(m.Trace)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	// By the specification, a list that is invalid counts as absent.
	state, err := trace.ParseTraceState(m.State)
	if err != nil {
		state = trace.TraceState{}
	}
	m.config = trace.SpanContextConfig{TraceID: traceID, TraceFlags: trace.FlagsSampled, TraceState: state}
	if m.own, err = m.context(m.ID); err != nil {
		return fmt.Errorf("read the span: %w", err)
	}
	if m.last, err = m.context(m.Last); err != nil {
		return fmt.Errorf("read the span of the last try: %w", err)
	}
	if m.Parent == "" {
		return nil
	}
	if m.parent, err = m.context(m.Parent); err != nil {
		return fmt.Errorf("read the parent: %w", err)
	}
	m.parent = m.parent.WithRemote(true)
	return nil
}

// context is a span of the trace by its id.
func (m *maker) context(id string) (trace.SpanContext, error) {
	spanID, err := trace.SpanIDFromHex(id)
	if err != nil {
		return trace.SpanContext{}, err
	}
	config := m.config
	config.SpanID = spanID
	return trace.NewSpanContext(config), nil
}
