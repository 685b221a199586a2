package opentelemetry_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/internal/observe/tracing"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A span is one of what the data plane reports.
type span struct {
	Trace, ID, Parent, State, Name string
	Remote                         bool
	Kind                           trace.SpanKind
	// Status is 2 for an error, as OTLP numbers it.
	Status     int
	Start, End int64
	Attributes map[string]any
}

// spanOf takes what is compared of a span.
func spanOf(from tracetest.SpanStub) span {
	made := span{
		Trace: from.SpanContext.TraceID().String(), ID: from.SpanContext.SpanID().String(), State: from.SpanContext.TraceState().String(), Name: from.Name,
		Remote: from.Parent.IsRemote(), Kind: from.SpanKind, Start: from.StartTime.UnixMicro(), End: from.EndTime.UnixMicro(), Attributes: map[string]any{},
	}
	if from.Parent.IsValid() {
		made.Parent = from.Parent.SpanID().String()
	}
	if from.Status.Code == codes.Error {
		made.Status = 2
	}
	for _, one := range from.Attributes {
		made.Attributes[string(one.Key)] = one.Value.AsInterface()
	}
	return made
}

const server, client = trace.SpanKindServer, trace.SpanKindClient

// spans are those that the data plane of a test has reported.
type spans struct {
	t       testing.TB
	g       *headgatetest.Instance
	seen    []string
	list    []span
	dropped int
}

func spansOf(t testing.TB, g *headgatetest.Instance) *spans { return &spans{t: t, g: g} }

// take reads what there is now.
func (s *spans) take() {
	s.t.Helper()
	reports, err := s.g.Client.Spans(s.t.Context(), s.seen)
	if err != nil {
		s.t.Fatal(err)
	}
	s.seen = nil
	for name, text := range reports {
		report, err := tracing.Read(text)
		if err != nil || report.Unreadable > 0 {
			s.t.Fatalf("%d requests can't be read: %v: %s", report.Unreadable, err, text)
		}
		s.seen = append(s.seen, name)
		s.dropped += int(report.Dropped)
		for _, one := range report.Spans {
			s.list = append(s.list, spanOf(one))
		}
	}
}

// of waits until a trace has n spans: first the one of the request, then the others in the order of
// their starts.
func (s *spans) of(trace string, n int) []span {
	s.t.Helper()
	var found []span
	headgatetest.Eventually(s.t, fmt.Sprintf("%d spans of the trace %s", n, trace), func() bool {
		s.take()
		found = slices.DeleteFunc(slices.Clone(s.list), func(one span) bool { return one.Trace != trace })
		return len(found) >= n
	})
	slices.SortFunc(found, func(a, b span) int {
		if a.Kind != b.Kind {
			return int(a.Kind - b.Kind)
		}
		return int(a.Start - b.Start)
	})
	if len(found) != n || n > 0 && (found[0].Kind != server || n > 1 && found[1].Kind != client) {
		s.t.Fatalf("the trace %s has the spans %+v", trace, found)
	}
	for _, one := range found {
		if !isSpan.MatchString(one.ID) || one.Start > one.End {
			s.t.Errorf("the span %+v", one)
		}
	}
	return found
}

var (
	isSpan      = regexp.MustCompile(`^[0-9a-f]{16}$`)
	traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$`)
)

// A parent is what a backend got.
type parent struct{ trace, span, flags string }

func parentOf(t testing.TB, header http.Header) parent {
	t.Helper()
	found := traceparent.FindStringSubmatch(header.Get("Traceparent"))
	if found == nil || len(header.Values("Traceparent")) != 1 {
		t.Fatalf("the backend got the traceparent %q", header.Values("Traceparent"))
	}
	return parent{found[1], found[2], found[3]}
}

// want compares attributes.
func (s span) want(t testing.TB, attributes map[string]any) {
	t.Helper()
	for name, value := range attributes {
		if got := s.Attributes[name]; fmt.Sprint(got) != fmt.Sprint(value) {
			t.Errorf("span %q has %s %v, want %v; all: %v", s.Name, name, got, value, s.Attributes)
		}
	}
}
