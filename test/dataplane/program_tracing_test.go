package dataplane_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/collectortest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

const (
	serverSpan, clientSpan = 2, 3
	sender                 = "00f067aa0ba902b7"
)

// A traced program exports the spans of its requests to a collector.
type traced struct {
	*program
	collector *collectortest.Collector
	// sent is the number of requests that have a span, and kinds that of traces of the tests' own.
	sent, kinds int
}

// checkTracing: the collector gets the spans of all requests, once, over a reload, the death of workers
// and its own.
func checkTracing(t *testing.T, binary string) {
	t.Parallel()
	begin := time.Now()
	c := collectortest.Start(t, collectortest.Options{})
	auth := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/deny" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	const service = "auth-url: http://auth.default.svc.cluster.local"
	manifests := served("one", headgatetest.StartEcho(t, "one")) + served("auth", auth) + served("two", "127.0.0.1:1", headgatetest.StartEcho(t, "two")) +
		headgatetest.Ingress("web", "a.test", "/", "one") + headgatetest.Ingress("retried", "retried.test", "/", "two") +
		headgatetest.Ingress("open", "open.test", "/", "one", service+"/allow") + headgatetest.Ingress("shut", "shut.test", "/", "one", service+"/deny") +
		headgatetest.Ingress("untrusted", "new.test", "/", "one", "opentelemetry-trust-incoming-span: false", "opentelemetry-operation-name: new $request_method") +
		headgatetest.Ingress("untraced", "off.test", "/", "one", "enable-opentelemetry: false") +
		headgatetest.Ingress("example", "example.test", "/", "one")
	host, port, _ := strings.Cut(c.GRPC, ":")
	keys := []string{
		"enable-opentelemetry: true", "otlp-collector-host: " + host, "otlp-collector-port: " + port, "otel-service-name: edge", "otel-schedule-delay-millis: 100",
		"worker-processes: 2",
	}
	p := newProgram(t, binary, manifests+headgatetest.Config(keys...), "--enable-metrics")
	p.cmd.Env = append(p.cmd.Env, "POD_NAMESPACE=ingress", "POD_NAME=headgate-0", "OTEL_EXPORTER_OTLP_TIMEOUT=2000")
	p.start()
	p.open(true)
	p.wantHealth("with NGINX", http.StatusOK, "ok")
	g := &traced{program: p, collector: c}

	g.checkProxied()
	g.checkAuth()
	g.checkRetries()
	g.checkSwitches()
	g.checkExample()
	g.sent += p.askMany(100)
	p.write("manifests/all.yaml", manifests+headgatetest.Config(append(keys, "keep-alive-requests: 2000")...), 0o644)
	done := make(chan int)
	go func() { done <- p.askMany(200) }()
	headgatetest.Eventually(t, "a reload", func() bool { return p.sum("headgate_reloads_total") == 1 })
	g.sent += <-done
	g.wantAll()
	g.checkTimes(begin)
	g.checkKilledWorkers()
	g.checkCollectorAway()
}

// get sends a request that is part of a trace of a client, and returns its response and the trace.
func (g *traced) get(host, path string) (*http.Response, string) {
	g.t.Helper()
	g.kinds++
	trace := fmt.Sprintf("4bf92f3577b34da6a3ce929d0000%04x", g.kinds)
	request, err := http.NewRequest("GET", "http://"+headgatetest.Address(g.http)+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	request.Host = host
	request.Header.Set("Traceparent", "00-"+trace+"-"+sender+"-01")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { response.Body.Close() })
	return response, trace
}

// parent is what the backend got of a trace: its id, that of the span, and the flags.
func (g *traced) parent(response *http.Response) (trace, span, flags string) {
	g.t.Helper()
	var echo struct{ Header http.Header }
	if err := json.NewDecoder(response.Body).Decode(&echo); err != nil {
		g.t.Fatal(err)
	}
	parts := strings.Split(echo.Header.Get("Traceparent"), "-")
	if len(parts) != 4 {
		g.t.Fatalf("the backend got %v", echo.Header)
	}
	return parts[1], parts[2], parts[3]
}

// spans waits for the span of the request of a trace. It is the first one; the others are in the order of
// their starts.
func (g *traced) spans(trace string) []collectortest.Span {
	g.t.Helper()
	var list []collectortest.Span
	headgatetest.Eventually(g.t, "the spans of the trace "+trace, func() bool {
		list = slices.DeleteFunc(g.collector.Spans(), func(s collectortest.Span) bool { return s.Trace != trace })
		return slices.ContainsFunc(list, func(s collectortest.Span) bool { return s.Kind == serverSpan })
	})
	slices.SortFunc(list, func(a, b collectortest.Span) int {
		if a.Kind != b.Kind {
			return a.Kind - b.Kind
		}
		return int(int64(a.Start - b.Start))
	})
	for i, s := range list {
		if (s.Kind == serverSpan) != (i == 0) || i > 0 && (s.Kind != clientSpan || s.Parent != list[0].ID) {
			g.t.Errorf("the trace %s has the spans %+v", trace, list)
		}
	}
	return list
}

// want compares a span with a name, a parent and attributes: name, value.
func (g *traced) want(s collectortest.Span, name, parent string, attributes ...string) {
	g.t.Helper()
	if s.Name != name || s.Parent != parent {
		g.t.Errorf("the span %q has the parent %q, want %q with %q", s.Name, s.Parent, name, parent)
	}
	for i := 0; i < len(attributes); i += 2 {
		if got := s.Attributes[attributes[i]]; fmt.Sprint(got) != attributes[i+1] {
			g.t.Errorf("the span %q has %s=%v, want %s; all: %v", s.Name, attributes[i], got, attributes[i+1], s.Attributes)
		}
	}
}

// A request that is proxied continues the client's trace.
func (g *traced) checkProxied() {
	g.t.Helper()
	response, trace := g.get("a.test", "/x?q=1&token=secret")
	g.sent++
	toTrace, toSpan, flags := g.parent(response)
	list := g.spans(trace)
	if len(list) != 2 || toTrace != trace || toSpan != list[1].ID || flags != "01" {
		g.t.Fatalf("the backend got %s-%s-%s; spans %+v", toTrace, toSpan, flags, list)
	}
	g.want(list[0], "GET /", sender, "http.request.method", "GET", "url.path", "/x", "url.query", "q=1&token=REDACTED", "server.address", "a.test", "url.scheme", "http",
		"server.port", "80", "client.address", "127.0.0.1", "http.route", "/", "http.response.status_code", "200", "k8s.namespace.name", "default",
		"k8s.ingress.name", "web", "k8s.service.name", "one")
	g.want(list[1], "GET", list[0].ID, "server.address", "127.0.0.1", "http.response.status_code", "200", "http.request.resend_count", "<nil>")
	// Sampled, and whether the parent is of another process.
	if list[0].Flags != 0x301 || list[1].Flags != 0x101 {
		g.t.Errorf("the flags are %#x and %#x", list[0].Flags, list[1].Flags)
	}
	for name, want := range map[string]string{"service.name": "edge", "k8s.pod.name": "headgate-0", "k8s.namespace.name": "ingress", "telemetry.sdk.language": "go"} {
		if got := list[0].Resource[name]; got != want {
			g.t.Errorf("the resource has %s=%v, want %s", name, got, want)
		}
	}
	if list[0].Resource["service.version"] == nil || list[0].Scope.Name != "headgate" {
		g.t.Errorf("the resource is %v, the scope %v", list[0].Resource, list[0].Scope)
	}
}

// The call to an auth service has a span, and a request that it refuses no span of a backend.
func (g *traced) checkAuth() {
	g.t.Helper()
	for host, status := range map[string]int{"open.test": 200, "shut.test": 403} {
		response, trace := g.get(host, "/")
		g.sent++
		if response.StatusCode != status {
			g.t.Errorf("%s: status %d, want %d", host, response.StatusCode, status)
		}
		list := g.spans(trace)
		if len(list) != map[int]int{200: 3, 403: 2}[status] {
			g.t.Fatalf("%s: spans %+v", host, list)
		}
		g.want(list[0], "GET /", sender, "http.response.status_code", fmt.Sprint(status), "error.type", "<nil>")
		g.want(list[1], "external authentication", list[0].ID, "http.response.status_code", fmt.Sprint(status), "server.address", "auth.default.svc.cluster.local")
	}
}

// Each try has a span, and the backend gets that of the last one.
func (g *traced) checkRetries() {
	g.t.Helper()
	const asked = 20
	spans, traces := map[string]string{}, []string{}
	for range asked {
		response, trace := g.get("retried.test", "/")
		g.sent++
		_, spans[trace], _ = g.parent(response)
		traces = append(traces, trace)
	}
	retried := 0
	for _, trace := range traces {
		list := g.spans(trace)
		if last := list[len(list)-1]; last.ID != spans[trace] || len(list) > 3 {
			g.t.Errorf("the backend got the span %s; spans %+v", spans[trace], list)
		}
		if len(list) == 3 {
			retried++
			g.want(list[1], "GET", list[0].ID, "server.port", "1", "http.response.status_code", "502", "error.type", "502")
			g.want(list[2], "GET", list[0].ID, "http.response.status_code", "200", "http.request.resend_count", "1")
			if list[1].Status.Code != 2 || list[2].Status.Code != 0 || list[0].Status.Code != 0 {
				g.t.Errorf("the statuses of the spans %+v", list)
			}
		}
	}
	if retried == 0 {
		g.t.Errorf("none of %d requests is tried again", asked)
	}
}

// Without trust, a request has a trace of its own; with tracing off it has no spans, and passes the
// client's header on.
func (g *traced) checkSwitches() {
	g.t.Helper()
	response, theirs := g.get("new.test", "/")
	g.sent++
	trace, span, _ := g.parent(response)
	if trace == theirs {
		g.t.Error("the trace of a client without trust is continued")
	}
	list := g.spans(trace)
	if len(list) != 2 || list[1].ID != span {
		g.t.Fatalf("the backend got the span %s; spans %+v", span, list)
	}
	g.want(list[0], "new GET", "")

	response, theirs = g.get("off.test", "/")
	if trace, span, flags := g.parent(response); trace != theirs || span != sender || flags != "01" {
		g.t.Errorf("with tracing off the backend got %s-%s-%s", trace, span, flags)
	}
}

// An exemplar of the metrics names the trace of a request.
func (g *traced) checkExample() {
	g.t.Helper()
	_, trace := g.get("example.test", "/")
	g.sent++
	found := regexp.MustCompile(`(?m)^nginx_ingress_controller_request_duration_seconds_bucket\{.*ingress="example".* # \{trace_id="(\w+)"\} `)
	headgatetest.Eventually(g.t, "the trace in OpenMetrics", func() bool {
		request, err := http.NewRequest("GET", "http://"+headgatetest.Address(g.healthz)+"/metrics", nil)
		if err != nil {
			g.t.Fatal(err)
		}
		request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			g.t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			g.t.Fatal(err)
		}
		match := found.FindSubmatch(text)
		return match != nil && string(match[1]) == trace
	})
	if text := g.metrics(); strings.Contains(text, "trace_id") {
		g.t.Error("Prometheus' own text has a trace")
	}
}

// wantAll waits until each request has one span, and looks for more.
func (g *traced) wantAll() {
	g.t.Helper()
	count := func() (servers, all int) {
		for _, s := range g.collector.Spans() {
			if s.Kind == serverSpan {
				servers++
			}
			all++
		}
		return servers, all
	}
	headgatetest.Eventually(g.t, fmt.Sprintf("the spans of %d requests", g.sent), func() bool {
		servers, _ := count()
		return servers >= g.sent
	})
	// All that workers made is here.
	headgatetest.Eventually(g.t, "all exported spans", func() bool {
		_, all := count()
		return all == g.sum("headgate_spans_exported_total")
	})
	servers, all := count()
	ids := map[string]bool{}
	for _, s := range g.collector.Spans() {
		ids[s.ID] = true
	}
	if dropped := g.sum("headgate_spans_dropped_total"); servers != g.sent || dropped != 0 || len(ids) != all {
		g.t.Errorf("%d requests have %d spans of their own; %d of %d ids differ, %d are dropped", g.sent, servers, len(ids), all, dropped)
	}
}

// checkTimes: times are whole microseconds, with all their digits, and within the test.
func (g *traced) checkTimes(begin time.Time) {
	g.t.Helper()
	const microsecond, digits = 1000, 100000
	exact := 0
	from, to := uint64(begin.Add(-time.Minute).UnixNano()), uint64(time.Now().Add(time.Minute).UnixNano())
	for _, s := range g.collector.Spans() {
		if s.Start%microsecond != 0 || s.End%microsecond != 0 || s.Start > s.End || s.Start < from || s.End > to {
			g.t.Errorf("a span lasts from %d to %d", s.Start, s.End)
		}
		if s.End%digits != 0 {
			exact++
		}
	}
	if exact < g.sent/2 {
		g.t.Errorf("%d of %d requests end at other times than tenths of a millisecond", exact, g.sent)
	}
}

// checkKilledWorkers: workers that are killed lose what they have not reported, and no more; those of the
// next ones arrive.
func (g *traced) checkKilledWorkers() {
	g.t.Helper()
	servers := func() int {
		n := 0
		for _, s := range g.collector.Spans() {
			if s.Kind == serverSpan {
				n++
			}
		}
		return n
	}
	before := servers()
	const asked = 200
	g.askMany(asked)
	for _, pid := range g.workers() {
		kill(g.t, pid, syscall.SIGKILL)
	}
	_, trace := g.get("a.test", "/")
	g.spans(trace)
	// Each worker reports when it has 50 spans: a request has two.
	const reported = asked - 2*25
	var after int
	headgatetest.Eventually(g.t, "what was reported before", func() bool {
		after = servers() - before - 1
		return after >= reported
	})
	if after > asked {
		g.t.Errorf("%d requests have %d spans of their own", asked, after)
	}
	g.t.Logf("killed workers lost the spans of %d of %d requests", asked-after, asked)
}

// checkCollectorAway: without the collector requests go on, and what it does not get is counted. It gets
// spans when it is back.
func (g *traced) checkCollectorAway() {
	g.t.Helper()
	g.collector.Kill()
	if answered := g.askMany(40); answered != 40 {
		g.t.Errorf("%d of 40 requests are answered without the collector", answered)
	}
	headgatetest.Eventually(g.t, "spans are dropped", func() bool { return g.sum(`headgate_spans_dropped_total{reason="export"}`) > 0 })
	g.collector.Start()
	headgatetest.Eventually(g.t, "the collector gets spans again", func() bool {
		exported, dropped := g.sum("headgate_spans_exported_total"), g.sum("headgate_spans_dropped_total")
		g.get("a.test", "/")
		headgatetest.Eventually(g.t, "they are counted", func() bool {
			return g.sum("headgate_spans_exported_total")+g.sum("headgate_spans_dropped_total") > exported+dropped
		})
		return g.sum("headgate_spans_exported_total") > exported
	})
	if n := g.sum(`headgate_spans_dropped_total{reason="unreadable"}`); n != 0 {
		g.t.Errorf("%d spans can't be read", n)
	}
}
