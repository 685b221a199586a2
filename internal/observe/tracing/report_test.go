package tracing

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	lastID  = "b7ad6b7169203331"
)

// requestText is a request as Lua writes it, with some fields changed: name, value.
func requestText(fields ...string) string {
	all := map[string]string{
		"trace": `"` + traceID + `"`, "id": `"` + spanID + `"`, "last": `"` + lastID + `"`, "start": `"1700000000000001"`, "finish": "5000",
		"path": `"/cart"`, "scheme": `"https"`, "route": `{"path":"/","namespace":"shop","ingress":"web","service":"cart"}`, "facts": `"200"`,
	}
	for i := 0; i < len(fields); i += 2 {
		all[fields[i]] = fields[i+1]
	}
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, fmt.Sprintf("%q:%s", name, all[name]))
	}
	return "{" + strings.Join(list, ",") + "}"
}

// factsText is $hg_span as JSON.
func factsText(values ...string) string {
	text, err := json.Marshal(strings.Join(values, "\n"))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// shown is all of a span as text.
func shown(span tracetest.SpanStub) string {
	text := fmt.Sprintf("%s %s %d..%d %s %s<%s", span.Name, span.SpanKind, span.StartTime.UnixMicro()-1700000000000001,
		span.EndTime.UnixMicro()-1700000000000001, span.Status.Code, span.SpanContext.SpanID(), span.Parent.SpanID())
	for _, a := range span.Attributes {
		text += fmt.Sprintf(" %s=%s:%s", a.Key, a.Value.Type(), a.Value.String())
	}
	return text
}

// A request with a call and three tries of two groups of endpoints.
func TestRead(t *testing.T) {
	spans, err := readRequest([]byte(requestText("parent", `"00000000000000aa"`, "state", `"a=1,b=2"`, "tries", "[100,1100,2100]",
		"calls", `[{"id":"00000000000000bb","method":"POST","server":"auth.test","start":10,"finish":90,"status":403}]`,
		"facts", factsText("502", "10.0.0.1:80, [2001:db8::1]:8080 : 10.0.0.3:80", "-, 504 : 502", "0.001, 0.001 : -", "-, 0.002 : 0.000", "BREW", "HTTP/2.0",
			"192.0.2.1", "192.0.2.2", "a.test", "a.test:8443", "id-1", "agent/1 \"x\"", "q=1&%74oken=x&Sig=y\n&z"))))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`HTTP / server 0..5000 Error 00f067aa0ba902b7<00000000000000aa http.request.method=STRING:_OTHER ` +
			`url.scheme=STRING:https url.path=STRING:/cart url.query=STRING:q=1&%74oken=REDACTED&Sig=REDACTED&z server.address=STRING:a.test ` +
			`client.address=STRING:192.0.2.1 network.peer.address=STRING:192.0.2.2 network.protocol.version=STRING:2 user_agent.original=STRING:agent/1 "x" ` +
			`http.route=STRING:/ k8s.namespace.name=STRING:shop k8s.ingress.name=STRING:web k8s.service.name=STRING:cart headgate.request_id=STRING:id-1 ` +
			`http.request.method_original=STRING:BREW server.port=INT64:8443 http.response.status_code=INT64:502 error.type=STRING:502`,
		`external authentication client 10..90 Unset 00000000000000bb<00f067aa0ba902b7 http.request.method=STRING:POST server.address=STRING:auth.test http.response.status_code=INT64:403`,
		`HTTP client 100..1100 Error TRY<00f067aa0ba902b7 http.request.method=STRING:_OTHER server.address=STRING:10.0.0.1 server.port=INT64:80 error.type=STRING:_OTHER`,
		`HTTP client 1100..2100 Error TRY<00f067aa0ba902b7 http.request.method=STRING:_OTHER server.address=STRING:2001:db8::1 server.port=INT64:8080 ` +
			`http.request.resend_count=INT64:1 headgate.connect_time_ms=INT64:2 http.response.status_code=INT64:504 error.type=STRING:504`,
		`HTTP client 2100..5000 Error b7ad6b7169203331<00f067aa0ba902b7 http.request.method=STRING:_OTHER server.address=STRING:10.0.0.3 server.port=INT64:80 ` +
			`http.request.resend_count=INT64:2 http.response.status_code=INT64:502 error.type=STRING:502`,
	}
	if len(spans) != len(want) {
		t.Fatalf("%d spans, want %d", len(spans), len(want))
	}
	ids := map[trace.SpanID]bool{}
	for i, span := range spans {
		got := shown(span)
		if i == 2 || i == 3 {
			got = strings.Replace(got, span.SpanContext.SpanID().String(), "TRY", 1)
		}
		if got != want[i] {
			t.Errorf("span %d:\n%s\nwant\n%s", i, got, want[i])
		}
		if c := span.SpanContext; c.TraceID().String() != traceID || !c.IsSampled() || c.IsRemote() || c.TraceState().String() != "a=1,b=2" {
			t.Errorf("span %d: %+v", i, c)
		}
		ids[span.SpanContext.SpanID()] = true
	}
	if parent := spans[0].Parent; parent.TraceID().String() != traceID || !parent.IsRemote() || len(ids) != len(want) {
		t.Errorf("parent %+v, %d ids", parent, len(ids))
	}
}

func TestReadTolerates(t *testing.T) {
	spans, err := readRequest([]byte(requestText("finish", "-1", "state", `"not a list"`, "name", `"`+strings.Repeat("é", maxName)+`"`, "path", "\"\xff\\u0000\"",
		"tries", "[9000,1e300]", "facts", factsText("000", "10.0.0.1:80, web", "x", "1e400"))))
	if err != nil || len(spans) != 2 {
		t.Fatal(err, spans)
	}
	span := spans[0]
	if !span.EndTime.Equal(span.StartTime) || span.SpanContext.TraceState().Len() != 0 || len(span.Name) > maxName || len(span.Name) < maxName-1 || !utf8.ValidString(span.Name) {
		t.Errorf("%+v", span)
	}
	if span.Parent.IsValid() {
		t.Error("a span without a parent has one")
	}
	// A client that went away got no response.
	if span.Status.Code != codes.Error {
		t.Errorf("the status is %v", span.Status)
	}
}

func TestReadReport(t *testing.T) {
	broken := []string{
		requestText("trace", `"`+strings.Repeat("0", 32)+`"`), requestText("trace", `"abc"`), requestText("trace", "1"), requestText("id", `"`+strings.Repeat("0", 16)+`"`),
		requestText("last", `"x"`), requestText("parent", `"x"`), requestText("start", `"0"`), requestText("start", `"-1"`), requestText("start", `"1e300"`),
		requestText("start", `"soon"`), requestText("start", `"9223372036854775807"`), requestText("calls", `[{"id":"x"}]`), requestText("tries", `{}`), "null", "3", "[]", "{}",
	}
	all := append([]string{requestText()}, broken...)
	read, err := Read([]byte(`{"dropped":7,"requests":[` + strings.Join(all, ",") + "]}"))
	if err != nil || len(read.Spans) != 1 || read.Dropped != 7 || int(read.Unreadable) != len(broken) {
		t.Errorf("%d spans, %d dropped, %d unreadable, %v; want 1, 7, %d", len(read.Spans), read.Dropped, read.Unreadable, err, len(broken))
	}
	for _, text := range broken {
		if _, err := readRequest([]byte(text)); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
	for _, text := range []string{"", "[]", "{", `{"dropped":-1}`, `{"requests":{}}`} {
		if _, err := Read([]byte(text)); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func TestRedacted(t *testing.T) {
	for query, want := range map[string]string{
		"":                         "",
		"a=1&b":                    "a=1&b",
		"token":                    "token",
		"token=":                   "token=REDACTED",
		"a=1&TOKEN=x=y&b=2":        "a=1&TOKEN=REDACTED&b=2",
		"%74%6Fken=x&tok%zzen=x":   "%74%6Fken=REDACTED&tok%zzen=x",
		"private_token=x&otp=1":    "private_token=REDACTED&otp=REDACTED",
		"X-Amz-Signature=x&sig=yy": "X-Amz-Signature=REDACTED&sig=REDACTED",
		"tokens=x&my_token=x":      "tokens=x&my_token=x",
	} {
		if got := redacted(query); got != want {
			t.Errorf("%q became %q, want %q", query, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"dropped":1,"requests":[` + requestText() + "," + requestText("tries", "[1e400]", "facts", factsText("200", "a:1, b:2 : c:3", "1, 2, 3")) + "]}"))
	f.Add([]byte("{\"requests\":[" + requestText("name", "\"\xff\\ud800\"", "state", "\"a=\xfe\"", "facts", "\"\xc0\\n\\n\"", "finish", "1e18") + "]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := Read(data)
		if err != nil {
			return
		}
		var r struct{ Requests []json.RawMessage }
		if err := json.Unmarshal(data, &r); err != nil || int(read.Unreadable) > len(r.Requests) || len(read.Spans)+int(read.Unreadable) < len(r.Requests) {
			t.Fatalf("%d spans and %d unreadable ones of %d requests (%v)", len(read.Spans), read.Unreadable, len(r.Requests), err)
		}
		for _, span := range read.Spans {
			if !span.SpanContext.IsValid() || span.EndTime.Before(span.StartTime) || span.StartTime.UnixNano() <= 0 || span.EndTime.UnixNano() <= 0 {
				t.Fatalf("a span that can't be exported: %+v", span)
			}
			texts := []string{span.Name, span.Status.Description, span.SpanContext.TraceState().String()}
			for _, a := range span.Attributes {
				texts = append(texts, string(a.Key), a.Value.String())
			}
			for _, text := range texts {
				if !utf8.ValidString(text) || len(text) > maxText {
					t.Fatalf("not UTF-8, or too long: %q", text)
				}
			}
		}
	})
}
