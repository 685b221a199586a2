package collectortest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// A Span is one that the collector got.
type Span struct {
	Trace   string `json:"traceId"`
	ID      string `json:"spanId"`
	Parent  string `json:"parentSpanId"`
	State   string `json:"traceState"`
	Name    string `json:"name"`
	Kind    int    `json:"kind"`
	Flags   uint32 `json:"flags"`
	Start   uint64 `json:"startTimeUnixNano,string"`
	End     uint64 `json:"endTimeUnixNano,string"`
	Status  Status `json:"status"`
	Written []pair `json:"attributes"`
	// Attributes are its own, Resource those of what made it, and Scope says which program.
	Attributes map[string]any `json:"-"`
	Resource   map[string]any `json:"-"`
	Scope      Scope          `json:"-"`
}

// A Status says whether what a span stands for failed: 2 if so.
type Status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// A Scope names a program.
type Scope struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A pair is an attribute as OTLP writes it: {"stringValue": "GET"}, {"intValue": "200"}.
type pair struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

func attributes(list []pair) map[string]any {
	all := map[string]any{}
	for _, one := range list {
		for _, value := range one.Value {
			all[one.Key] = value
		}
	}
	return all
}

// Spans are all that the collector got, also before it was started again.
func (c *Collector) Spans() []Span {
	c.t.Helper()
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(c.t, err)
	var spans []Span
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // It is being written.
		}
		var batch struct {
			Resources []struct {
				Resource struct {
					Attributes []pair `json:"attributes"`
				} `json:"resource"`
				Scopes []struct {
					Scope Scope  `json:"scope"`
					Spans []Span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		must(c.t, json.Unmarshal([]byte(line), &batch))
		for _, r := range batch.Resources {
			for _, s := range r.Scopes {
				for _, span := range s.Spans {
					span.Attributes, span.Resource, span.Scope = attributes(span.Written), attributes(r.Resource.Attributes), s.Scope
					spans = append(spans, span)
				}
			}
		}
	}
	return spans
}
