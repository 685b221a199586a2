package opentelemetry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/headgatetest"
)

// A span is one as the data plane reports it.
type span struct {
	Trace, ID, Parent, State, Name string
	Remote                         bool
	Kind, Status                   int
	Start, End                     int64
	Attributes                     map[string]any
}

const server, client = 2, 3

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
		var report struct {
			Dropped int
			Spans   []span
		}
		if err := json.Unmarshal(text, &report); err != nil {
			s.t.Fatalf("a report that is not JSON: %v: %s", err, text)
		}
		s.seen = append(s.seen, name)
		s.dropped += report.Dropped
		s.list = append(s.list, report.Spans...)
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
			return a.Kind - b.Kind
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
