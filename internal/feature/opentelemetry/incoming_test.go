package opentelemetry_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// What clients send is continued where it is valid and trusted, and replaced where it is not: no backend gets
// bytes that are not of that form.
func TestIncoming(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Ingress("new", "new.test", "/", "a", "opentelemetry-trust-incoming-span: false")+
		headgatetest.Ingress("off", "off.test", "/", "a", "enable-opentelemetry: false"))
	s := spansOf(t, g)
	long := strings.Repeat("k=v,", 2000)
	checks := []func(){}
	for i, c := range []struct {
		name    string
		sent    http.Header
		trace   string // that of the client; empty for a new one
		flags   string
		backend http.Header // what the backend gets besides
	}{
		{"traceparent", http.Header{"Traceparent": {sampled}, "Tracestate": {"a=b,c=d"}}, clients, "01", http.Header{"Tracestate": {"a=b,c=d"}}},
		{"not sampled", http.Header{"Traceparent": {unsampled}, "Tracestate": {"a=b"}}, clients, "00", http.Header{"Tracestate": {"a=b"}}},
		{"other flags", http.Header{"Traceparent": {sampled[:53] + "fe"}}, clients, "00", nil},
		{"more flags", http.Header{"Traceparent": {sampled[:53] + "0f"}}, clients, "01", nil},
		{"a later version", http.Header{"Traceparent": {"cc" + sampled[2:] + "-what"}}, clients, "01", nil},
		{"a later version without a hyphen", http.Header{"Traceparent": {"cc" + sampled[2:] + ".what"}}, "", "01", nil},
		{"an invalid version", http.Header{"Traceparent": {"ff" + sampled[2:]}}, "", "01", nil},
		{"longer", http.Header{"Traceparent": {sampled + "-"}}, "", "01", nil},
		{"shorter", http.Header{"Traceparent": {sampled[:54]}}, "", "01", nil},
		{"no trace", http.Header{"Traceparent": {"00-" + strings.Repeat("0", 32) + "-" + theirs + "-01"}, "Tracestate": {"a=b"}}, "", "01", http.Header{"Tracestate": nil}},
		{"no span", http.Header{"Traceparent": {"00-" + clients + "-" + strings.Repeat("0", 16) + "-01"}}, "", "01", nil},
		{"upper case", http.Header{"Traceparent": {strings.ToUpper(sampled)}}, "", "01", nil},
		{"no hexadecimal digits", http.Header{"Traceparent": {strings.Replace(sampled, "4bf", "4bg", 1)}}, "", "01", nil},
		{"garbage", http.Header{"Traceparent": {"\"};'\x80\xff"}, "Tracestate": {"\xff"}, "B3": {"\xfe-1"}, "X-B3-Traceid": {"'"}}, "", "01", http.Header{"Tracestate": nil}},
		{"a tracestate alone", http.Header{"Tracestate": {"a=b"}}, "", "01", http.Header{"Tracestate": nil}},
		{"a long tracestate", http.Header{"Traceparent": {sampled}, "Tracestate": {long[:7000]}}, clients, "01", http.Header{"Tracestate": nil}},
		{"a bad tracestate", http.Header{"Traceparent": {sampled}, "Tracestate": {"a=\x80"}}, clients, "01", http.Header{"Tracestate": nil}},
		{"b3", http.Header{"B3": {clients + "-" + theirs + "-1"}}, clients, "01", http.Header{"B3": {clients + "-SPAN-1"}}},
		{"b3 with a parent", http.Header{"B3": {clients + "-" + theirs + "-1-05e3ac9a4f6e3b90"}}, clients, "01", http.Header{"B3": {clients + "-SPAN-1"}}},
		{"b3, to debug", http.Header{"B3": {clients + "-" + theirs + "-d"}}, clients, "01", http.Header{"B3": {clients + "-SPAN-d"}}},
		{"b3, not sampled", http.Header{"B3": {clients + "-" + theirs + "-0"}}, clients, "00", http.Header{"B3": {clients + "-SPAN-0"}}},
		{"b3 without a decision", http.Header{"B3": {clients + "-" + theirs}}, clients, "01", nil},
		{"a short b3", http.Header{"B3": {clients[16:] + "-" + theirs + "-1"}}, strings.Repeat("0", 16) + clients[16:], "01", nil},
		{"b3 denies", http.Header{"B3": {"0"}}, "", "00", nil},
		{"bad b3", http.Header{"B3": {clients + "-" + theirs + "-1-x"}}, "", "01", nil},
		{"b3 with a bad decision", http.Header{"B3": {clients + "-" + theirs + "-yes"}}, "", "01", nil},
		{"X-B3", http.Header{"X-B3-Traceid": {clients}, "X-B3-Spanid": {theirs}, "X-B3-Sampled": {"1"}, "X-B3-Parentspanid": {"05e3ac9a4f6e3b90"}}, clients, "01",
			http.Header{"X-B3-Traceid": {clients}, "X-B3-Spanid": {"SPAN"}, "X-B3-Sampled": {"1"}, "X-B3-Parentspanid": nil}},
		{"X-B3, not sampled", http.Header{"X-B3-Traceid": {clients}, "X-B3-Spanid": {theirs}, "X-B3-Sampled": {"0"}}, clients, "00", http.Header{"X-B3-Sampled": {"0"}}},
		{"X-B3, to debug", http.Header{"X-B3-Traceid": {clients}, "X-B3-Spanid": {theirs}, "X-B3-Flags": {"1"}}, clients, "01", http.Header{"X-B3-Flags": {"1"}, "X-B3-Sampled": nil}},
		{"X-B3 denies", http.Header{"X-B3-Sampled": {"0"}}, "", "00", nil},
		{"X-B3, to debug, alone", http.Header{"X-B3-Flags": {"1"}}, "", "01", http.Header{"X-B3-Spanid": {"SPAN"}, "X-B3-Flags": {"1"}}},
		{"X-B3, a parent alone", http.Header{"X-B3-Parentspanid": {theirs}}, "", "01", http.Header{"X-B3-Spanid": {"SPAN"}, "X-B3-Parentspanid": nil}},
		{"X-B3, a span alone", http.Header{"X-B3-Spanid": {theirs}}, "", "01", http.Header{"X-B3-Spanid": {"SPAN"}}},
		{"X-B3 without a span", http.Header{"X-B3-Traceid": {clients}, "X-B3-Sampled": {"1"}}, "", "01", nil},
		{"a span of X-B3 alone", http.Header{"X-B3-Spanid": {theirs}}, "", "01", nil},
		{"X-B3 to debug alone", http.Header{"X-B3-Flags": {"1"}}, "", "01", http.Header{"X-B3-Flags": {"1"}}},
		{"both", http.Header{"Traceparent": {sampled}, "B3": {"1" + clients[1:] + "-" + theirs + "-0"}}, clients, "01", http.Header{"B3": {clients + "-SPAN-1"}}},
	} {
		// Each case has a trace of its own.
		own := fmt.Sprintf("%s%02x", clients[:30], i)
		of := func(text string) string {
			return strings.ReplaceAll(strings.ReplaceAll(text, clients, own), clients[16:], own[16:])
		}
		c.trace = of(c.trace)
		for _, values := range c.sent {
			values[0] = of(values[0])
		}
		header := g.Do(headgatetest.Request{Host: "a.test", Header: c.sent}).WantStatus(t, 200).Echo.Header
		got := parentOf(t, header)
		if (c.trace != "" && got.trace != c.trace) || (c.trace == "" && got.trace == own) || got.flags != c.flags {
			t.Errorf("%s: the backend got %+v", c.name, got)
		}
		for name, values := range c.backend {
			want := strings.ReplaceAll(of(strings.Join(values, ",")), "SPAN", got.span)
			if has := strings.Join(header.Values(name), ","); has != want {
				t.Errorf("%s: the backend got %s %q, want %q", c.name, name, has, want)
			}
		}
		state := header.Get("Tracestate")
		checks = append(checks, func() {
			if c.flags == "00" {
				s.of(got.trace, 0)
				return
			}
			list := s.of(got.trace, 2)
			want := ""
			if c.trace != "" {
				want = theirs
			}
			if list[0].Parent != want || list[0].Remote != (want != "") || list[0].State != state || list[1].ID != got.span {
				t.Errorf("%s: spans %+v", c.name, list)
			}
		})

		header = g.Do(headgatetest.Request{Host: "new.test", Header: c.sent}).WantStatus(t, 200).Echo.Header
		if got := parentOf(t, header); got.trace == own || got.flags != "01" || header.Get("Tracestate") != "" ||
			strings.Contains(header.Get("B3")+header.Get("X-B3-Traceid"), own) || strings.Contains(header.Get("X-B3-Spanid")+header.Get("X-B3-Parentspanid"), theirs) || header.Get("X-B3-Flags") != "" {
			t.Errorf("%s: without trust the backend got %v", c.name, header)
		}
		header = g.Do(headgatetest.Request{Host: "off.test", Header: c.sent}).WantStatus(t, 200).Echo.Header
		for name, values := range c.sent {
			// An echo can't say other bytes.
			if utf8.ValidString(values[0]) && header.Get(name) != values[0] {
				t.Errorf("%s: without tracing the backend got %s %q", c.name, name, header.Get(name))
			}
		}
	}
	for _, check := range checks {
		check()
	}
}

// With a ratio, the trace decides; without a sample, the backend learns that there is none. All of it is live.
func TestSamplers(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := start(t, "")
	s := spansOf(t, g)
	const low, high = "4bf92f3577b34da60000000000000001", "4bf92f3577b34da6fffffffffffffff0"
	ask := func(trace, flags string) string {
		t.Helper()
		header := http.Header{}
		if trace != "" {
			header.Set("Traceparent", "00-"+trace+"-"+theirs+"-"+flags)
		}
		got := parentOf(t, g.Do(headgatetest.Request{Host: "a.test", Header: header}).WantStatus(t, 200).Echo.Header)
		if trace != "" && got.trace != trace {
			t.Errorf("the trace %s became %s", trace, got.trace)
		}
		return got.flags
	}
	reloads := g.Value(g.Metrics.Reloads)
	for _, c := range []struct {
		keys                    []string
		root, low, high, denied string
	}{
		{[]string{"otel-sampler: AlwaysOn"}, "01", "01", "01", "00"},
		{[]string{"otel-sampler: AlwaysOff"}, "00", "01", "01", "00"},
		{[]string{"otel-sampler: AlwaysOff", "otel-sampler-parent-based: false"}, "00", "00", "00", "00"},
		{[]string{"otel-sampler: AlwaysOn", "otel-sampler-parent-based: false"}, "01", "01", "01", "01"},
		{[]string{"otel-sampler: ParentBased", "otel-sampler-parent-based: false"}, "01", "01", "01", "00"},
		{[]string{"otel-sampler: TraceIdRatioBased", "otel-sampler-ratio: 0.5", "otel-sampler-parent-based: false"}, "", "01", "00", "01"},
		{[]string{"otel-sampler: TraceIdRatioBased", "otel-sampler-ratio: 0", "otel-sampler-parent-based: false"}, "00", "00", "00", "00"},
		{[]string{"otel-sampler: TraceIdRatioBased", "otel-sampler-ratio: 1", "otel-sampler-parent-based: false"}, "01", "01", "01", "01"},
	} {
		g.Apply(headgatetest.Config(append(c.keys, collector, on)...))
		if root := ask("", ""); c.root != "" && root != c.root {
			t.Errorf("%v: without a trace of the client: %s", c.keys, root)
		}
		if got := ask(low, "01") + ask(high, "01") + ask(low, "00"); got != c.low+c.high+c.denied {
			t.Errorf("%v: the traces of the client are passed on with %s, want %s", c.keys, got, c.low+c.high+c.denied)
		}
	}
	g.Apply(headgatetest.Config("otel-sampler: TraceIdRatioBased", "otel-sampler-ratio: 0.25", collector, on))
	const asked = 2000
	n := 0
	for range asked {
		if ask("", "") == "01" {
			n++
		}
	}
	// Ten standard deviations.
	if n < 300 || n > 700 {
		t.Errorf("%d of %d requests are sampled", n, asked)
	}
	headgatetest.Eventually(t, "all spans", func() bool {
		s.take()
		roots := 0
		for _, one := range s.list {
			if one.Kind == server && one.Parent == "" {
				roots++
			}
		}
		return roots >= n
	})
	if s.dropped != 0 || g.Value(g.Metrics.Reloads) != reloads {
		t.Errorf("%d spans dropped; %d reloads", s.dropped, g.Value(g.Metrics.Reloads)-reloads)
	}
}
