package tracing

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// maxAttributes is the number of attributes that a span may have, and maxText the length of a
// text in bytes.
const (
	maxAttributes = 128
	maxText       = 8 << 10
)

// A report is what a worker has to say since its last one.
type report struct {
	// Dropped is the number of spans that found no room in the worker.
	Dropped uint64            `json:"dropped"`
	Spans   []json.RawMessage `json:"spans"`
}

// A written span is one of a report.
type written struct {
	Trace      string                     `json:"trace"`
	ID         string                     `json:"id"`
	Parent     string                     `json:"parent"`
	State      string                     `json:"state"`
	Remote     bool                       `json:"remote"`
	Name       string                     `json:"name"`
	Kind       int                        `json:"kind"`
	Start      json.Number                `json:"start"`
	End        json.Number                `json:"end"`
	Status     int                        `json:"status"`
	Message    string                     `json:"message"`
	Attributes map[string]json.RawMessage `json:"attributes"`
}

// The statuses of spans, as OTLP numbers them. Package codes has others.
const (
	statusUnset = 0
	statusError = 2
)

// parse reads a report. unreadable is the number of spans that could not be read.
func parse(data []byte) (spans []tracetest.SpanStub, dropped, unreadable uint64, err error) {
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, 0, 0, fmt.Errorf("decode a report of spans: %w", err)
	}
	for _, raw := range r.Spans {
		span, err := parseSpan(raw)
		if err != nil {
			unreadable++
			continue
		}
		spans = append(spans, span)
	}
	return spans, r.Dropped, unreadable, nil
}

// parseSpan reads a span. encoding/json replaces invalid UTF-8.
func parseSpan(data []byte) (tracetest.SpanStub, error) {
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return tracetest.SpanStub{}, fmt.Errorf("decode a span: %w", err)
	}
	span := tracetest.SpanStub{Name: limited(w.Name), SpanKind: trace.SpanKind(w.Kind)}
	if span.SpanKind != trace.SpanKindServer && span.SpanKind != trace.SpanKindClient {
		return span, fmt.Errorf("unknown kind %d", w.Kind)
	}
	var err error
	if span.SpanContext, span.Parent, err = w.contexts(); err != nil {
		return span, err
	}
	if span.StartTime, span.EndTime, err = w.times(); err != nil {
		return span, err
	}
	switch w.Status {
	case statusUnset:
	case statusError:
		span.Status = sdktrace.Status{Code: codes.Error, Description: limited(w.Message)}
	default:
		return span, fmt.Errorf("unknown status %d", w.Status)
	}
	span.Attributes, span.DroppedAttributes = attributes(w.Attributes)
	return span, nil
}

// contexts are the span's own identity and that of its parent, which is invalid without one.
func (w written) contexts() (own, parent trace.SpanContext, err error) {
	traceID, err := trace.TraceIDFromHex(w.Trace)
	if err != nil {
		return own, parent, fmt.Errorf("read the trace: %w", err)
	}
	id, err := trace.SpanIDFromHex(w.ID)
	if err != nil {
		return own, parent, fmt.Errorf("read the span's ID: %w", err)
	}
	// By the specification, a list that is invalid counts as absent.
	state, err := trace.ParseTraceState(w.State)
	if err != nil {
		state = trace.TraceState{}
	}
	c := trace.SpanContextConfig{TraceID: traceID, SpanID: id, TraceFlags: trace.FlagsSampled, TraceState: state}
	own = trace.NewSpanContext(c)
	if w.Parent == "" {
		return own, parent, nil
	}
	if c.SpanID, err = trace.SpanIDFromHex(w.Parent); err != nil {
		return own, parent, fmt.Errorf("read the parent: %w", err)
	}
	c.Remote = w.Remote
	return own, trace.NewSpanContext(c), nil
}

// times are the start and the end. A span does not end before it starts: the clock was set.
func (w written) times() (start, end time.Time, err error) {
	from, err := microseconds(w.Start)
	if err != nil {
		return start, end, fmt.Errorf("read the start: %w", err)
	}
	to, err := microseconds(w.End)
	if err != nil {
		return start, end, fmt.Errorf("read the end: %w", err)
	}
	return time.UnixMicro(from), time.UnixMicro(max(from, to)), nil
}

// microseconds reads a time, which OTLP holds in nanoseconds and 64 bits.
func microseconds(n json.Number) (int64, error) {
	value, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		// Lua may write large numbers with an exponent.
		number, err := n.Float64()
		if err != nil || number != math.Trunc(number) {
			return 0, errors.New("not a whole number")
		}
		value = int64(min(max(number, -1), math.MaxInt64/2))
	}
	if value <= 0 || value > math.MaxInt64/1000 {
		return 0, errors.New("out of range")
	}
	return value, nil
}

// attributes are those that can be read, in the order of their names, and the number of the
// others.
func attributes(from map[string]json.RawMessage) (list []attribute.KeyValue, dropped int) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		value, ok := attributeValue(from[key])
		if key == "" || len(key) > maxText || !ok || len(list) == maxAttributes {
			dropped++
			continue
		}
		list = append(list, attribute.KeyValue{Key: attribute.Key(key), Value: value})
	}
	return list, dropped
}

func attributeValue(data json.RawMessage) (value attribute.Value, ok bool) {
	if number, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		return attribute.Int64Value(number), true
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		return value, false
	}
	switch v := decoded.(type) {
	case string:
		return attribute.StringValue(limited(v)), true
	case bool:
		return attribute.BoolValue(v), true
	case float64:
		return attribute.Float64Value(v), true
	case []any:
		texts := make([]string, 0, len(v))
		for _, one := range v {
			text, isText := one.(string)
			if !isText {
				return value, false
			}
			texts = append(texts, limited(text))
		}
		return attribute.StringSliceValue(texts), true
	}
	return value, false
}

// limited cuts a text that is too long, between two characters.
func limited(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end]
}
