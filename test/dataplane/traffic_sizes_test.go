package dataplane_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// histograms are those of a family, by Ingress, with the numbers and sums of all methods and
// statuses.
func histograms(t *testing.T, g *headgatetest.Instance, family string) map[string]*dto.Histogram {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*dto.Histogram{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if f.GetName() == "nginx_ingress_controller_"+family && label.GetName() == "ingress" {
					h := m.GetHistogram()
					if before := found[label.GetValue()]; before != nil {
						*h.SampleSum += before.GetSampleSum()
						*h.SampleCount += before.GetSampleCount()
					}
					found[label.GetValue()] = h
				}
			}
		}
	}
	return found
}

// Sizes are those of what was sent, and times are there for requests that one endpoint answered.
func TestSizesAndTimesAreExact(t *testing.T) {
	t.Parallel()
	echo := headgatetest.StartEcho(t, "one")
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 1, Traffic: headgatetest.Traffic(), Timing: headgatetest.Hasty(),
		Manifests: served("one", echo) + served("dead", "127.0.0.1:1") + headgatetest.Service("half") + headgatetest.Endpoints("half", "127.0.0.1:1", echo) +
			headgatetest.Ingress("half", "half.test", "/", "half") +
			headgatetest.Ingress("web", "a.test", "/", "one") + headgatetest.Ingress("dead", "dead.test", "/", "dead") +
			headgatetest.Ingress("moved", "moved.test", "/", "one", "permanent-redirect: http://x.test/"),
	})
	const requests = 300
	sent, received := 0, 0
	for i := range requests {
		text := fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", strings.Repeat("x", i%100))
		if i%3 == 0 {
			text = fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", i, strings.Repeat("b", i))
		}
		if i%50 == 0 {
			g.Get("dead.test", "/").WantStatus(t, 502)
			g.Get("moved.test", "/").WantStatus(t, 301)
			g.Get("half.test", "/").WantStatus(t, 200)
		}
		connection := headgatetest.Dial(t, g.HTTP)
		if _, err := io.WriteString(connection, text); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(connection)
		if err != nil {
			t.Fatal(err)
		}
		connection.Close()
		sent, received = sent+len(text), received+len(answer)
	}
	wantSamples(t, g, requestsFamily, []string{"ingress"}, map[string]int{"ingress=web": requests, "ingress=dead": requests / 50, "ingress=moved": requests / 50, "ingress=half": requests / 50})
	for family, want := range map[string]int{"request_size": sent, "response_size": received, "bytes_sent": received} {
		if got := histograms(t, g, family)["web"].GetSampleSum(); got != float64(want) {
			t.Errorf("%s: %v bytes, want %d", family, got, want)
		}
	}
	for _, part := range []string{"connect", "header", "response"} {
		all := histograms(t, g, part+"_duration_seconds")
		if n := all["web"].GetSampleCount(); n != requests {
			t.Errorf("%s: %d values, want %d", part, n, requests)
		}
		if n := all["dead"].GetSampleCount() + all["moved"].GetSampleCount(); n != 0 && part != "response" {
			t.Errorf("%s: %d values of requests that no backend answered", part, n)
		}
		if n := all["half"].GetSampleCount(); n >= requests/50 {
			t.Errorf("%s: %d values, also of requests that were retried", part, n)
		}
	}
}

// tracing has a trace for each request with a header.
func tracing() []feature.Feature {
	return append(all.Features(), feature.Feature{
		Name:      "tracing",
		Resources: resource.Resources{Log: []resource.Handler{resource.NewHandler("headgate.feature.tracing", "log")}},
		Lua: featuretest.Module("tracing", `
local _M = {}
function _M.log()
    local id = ngx.var.http_x_trace
    if id then
        require("headgate.traffic").trace(id)
    end
end
return _M`),
	})
}

// The last request with a trace is an example of its bucket.
func TestRequestsWithTracesAreExamples(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 1, Traffic: headgatetest.Traffic(), Features: tracing(), Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("web", "a.test", "/", "one") + headgatetest.Ingress("other", "b.test", "/", "one"),
	})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	for _, id := range []string{"", trace, "too short", strings.Repeat(`"`, 32)} {
		g.Do(headgatetest.Request{Host: "a.test", Path: "/", Header: http.Header{"X-Trace": {id}}}).WantStatus(t, 200)
	}
	g.Get("b.test", "/").WantStatus(t, 200)
	wantSamples(t, g, requestsFamily, []string{"ingress"}, map[string]int{"ingress=web": 4, "ingress=other": 1})
	examples := func(ingress string) (list []string) {
		last := math.Inf(-1)
		for _, b := range histograms(t, g, "request_duration_seconds")[ingress].GetBucket() {
			e := b.GetExemplar()
			if e == nil {
				last = b.GetUpperBound()
				continue
			}
			if v := e.GetValue(); v > b.GetUpperBound() || v <= last && v != 0 || e.GetTimestamp().AsTime().Unix() < 1e9 {
				t.Errorf("the example is %v, in the bucket from %v to %v", e, last, b.GetUpperBound())
			}
			list = append(list, e.GetLabel()[0].GetName()+"="+e.GetLabel()[0].GetValue())
		}
		return list
	}
	if got := fmt.Sprint(examples("web")); got != "[trace_id="+trace+"]" {
		t.Errorf("the examples are %s", got)
	}
	if got := examples("other"); got != nil {
		t.Errorf("without a trace, the examples are %v", got)
	}
}
