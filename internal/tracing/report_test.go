package tracing

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

// spanText is a span with some fields changed: name, value.
func spanText(fields ...string) string {
	all := map[string]string{
		"trace": `"` + traceID + `"`, "id": `"` + spanID + `"`, "name": `"GET /"`, "kind": "2", "start": "1700000000000001", "end": "1700000000000002", "status": "0",
	}
	for i := 0; i < len(fields); i += 2 {
		all[fields[i]] = fields[i+1]
	}
	list := make([]string, 0, len(all))
	for name, value := range all {
		list = append(list, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func TestParseSpan(t *testing.T) {
	span, err := parseSpan([]byte(spanText("parent", `"b7ad6b7169203331"`, "remote", "true", "state", `"a=1,b=2"`, "status", "2", "message", `"no \u0000 endpoint"`,
		"start", "1.700000000000001e+15", "name", "\"a\xffb\"",
		"attributes", `{"http.request.method":"GET","http.response.status_code":200,"ok":true,"share":0.5,"list":["a","b"],"none":null,"deep":{},"":1,"mixed":["a",1]}`)))
	if err != nil {
		t.Fatal(err)
	}
	if span.Name != "a\ufffdb" || span.SpanKind != trace.SpanKindServer || span.Status.Code != codes.Error || span.Status.Description != "no \x00 endpoint" {
		t.Errorf("name, kind or status: %+v", span)
	}
	own, parent := span.SpanContext, span.Parent
	if own.TraceID().String() != traceID || own.SpanID().String() != spanID || !own.IsSampled() || own.IsRemote() || own.TraceState().String() != "a=1,b=2" {
		t.Errorf("identity: %+v", own)
	}
	if parent.SpanID().String() != "b7ad6b7169203331" || parent.TraceID() != own.TraceID() || !parent.IsRemote() {
		t.Errorf("parent: %+v", parent)
	}
	if span.StartTime.UnixMicro() != 1700000000000001 || span.EndTime.UnixMicro() != 1700000000000002 {
		t.Errorf("times: %v %v", span.StartTime, span.EndTime)
	}
	got := fmt.Sprint(len(span.Attributes), span.DroppedAttributes)
	for _, a := range span.Attributes {
		got += fmt.Sprintf(" %s=%s:%s", a.Key, a.Value.Type(), a.Value.String())
	}
	if want := `5 4 http.request.method=STRING:GET http.response.status_code=INT64:200 list=STRINGSLICE:["a","b"] ok=BOOL:true share=FLOAT64:0.5`; got != want {
		t.Errorf("attributes:\n%s\nwant\n%s", got, want)
	}
}

func TestParseSpanTolerates(t *testing.T) {
	span, err := parseSpan([]byte(spanText("end", "1600000000000000", "state", `"not a list"`, "name", `"`+strings.Repeat("é", maxText)+`"`)))
	if err != nil {
		t.Fatal(err)
	}
	if !span.EndTime.Equal(span.StartTime) || span.SpanContext.TraceState().Len() != 0 || len(span.Name) != maxText || !utf8.ValidString(span.Name) {
		t.Errorf("%+v", span)
	}
	if span.Parent.IsValid() {
		t.Error("a span without a parent has one")
	}
}

func TestParseReport(t *testing.T) {
	broken := []string{
		spanText("trace", `"`+strings.Repeat("0", 32)+`"`), spanText("trace", `"abc"`), spanText("trace", "1"), spanText("id", `"`+strings.Repeat("0", 16)+`"`),
		spanText("parent", `"x"`), spanText("kind", "0"), spanText("kind", "1"), spanText("kind", "9"), spanText("status", "1"), spanText("start", "0"), spanText("start", "-1"),
		spanText("start", "1e300"), spanText("end", "1.5"), spanText("end", `"soon"`), spanText("end", "9223372036854775807"), "null", "3", "[]", "{}",
	}
	all := append([]string{spanText()}, broken...)
	spans, dropped, unreadable, err := parse([]byte(`{"dropped":7,"spans":[` + strings.Join(all, ",") + "]}"))
	if err != nil || len(spans) != 1 || dropped != 7 || int(unreadable) != len(broken) {
		t.Errorf("%d spans, %d dropped, %d unreadable, %v; want 1, 7, %d", len(spans), dropped, unreadable, err, len(broken))
	}
	for _, text := range broken {
		if _, err := parseSpan([]byte(text)); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
	for _, text := range []string{"", "[]", "{", `{"dropped":-1}`, `{"spans":{}}`} {
		if _, _, _, err := parse([]byte(text)); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"dropped":1,"spans":[` + spanText() + "," + spanText("attributes", `{"a":[1e400],"b":-0}`) + "]}"))
	f.Add([]byte("{\"spans\":[" + spanText("name", "\"\xff\\ud800\"", "state", "\"a=\xfe\"", "message", "\"\xc0\"", "status", "2") + "]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		spans, _, unreadable, err := parse(data)
		if err != nil {
			return
		}
		var r struct{ Spans []json.RawMessage }
		if err := json.Unmarshal(data, &r); err != nil || len(spans)+int(unreadable) != len(r.Spans) {
			t.Fatalf("%d spans and %d unreadable ones of %d (%v)", len(spans), unreadable, len(r.Spans), err)
		}
		for _, span := range spans {
			if !span.SpanContext.IsValid() || span.EndTime.Before(span.StartTime) || span.StartTime.UnixNano() <= 0 || len(span.Attributes) > maxAttributes {
				t.Fatalf("a span that can't be exported: %+v", span)
			}
			texts := []string{span.Name, span.Status.Description, span.SpanContext.TraceState().String()}
			for _, a := range span.Attributes {
				texts = append(texts, string(a.Key), a.Value.String())
			}
			for _, text := range texts {
				if !utf8.ValidString(text) {
					t.Fatalf("not UTF-8: %q", text)
				}
			}
		}
	})
}
