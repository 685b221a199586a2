package opentelemetry_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/headgatetest"
)

const (
	collector = "otlp-collector-host: collector.test"
	on        = "enable-opentelemetry: true"
	annotated = "enable-opentelemetry: true"
)

func served(name string, endpoints ...string) string {
	return headgatetest.Service(name) + headgatetest.Endpoints(name, endpoints...)
}

// start serves a.test by an echo backend, with tracing by the key.
func start(t *testing.T, manifests string, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{
		Timing: headgatetest.Hasty(),
		Manifests: served("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "a.test", "/", "a") + manifests +
			headgatetest.Config(append(keys, collector, on)...),
	})
}

// A request has a span of its own, and one of its backend, which the backend gets as its parent.
func TestSpans(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Ingress("shop", "a.test", "/shop", "a")+
		headgatetest.Ingress("buffered", "a.test", "/buffered", "a", "proxy-buffering: on")+
		headgatetest.Ingress("moved", "a.test", "/moved", "a", "permanent-redirect: https://x.test/")+
		headgatetest.Ingress("dead", "a.test", "/dead", "dead")+headgatetest.Service("dead"))
	s := spansOf(t, g)
	for _, path := range []string{"/shop/cart", "/buffered"} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			r := g.Do(headgatetest.Request{
				Host: "a.test", Path: path + "?q=1&token=secret&Sig=x", HTTP2: http2, Scheme: scheme, Header: http.Header{"User-Agent": {"agent/1"}},
			}).WantStatus(t, 200)
			got := parentOf(t, r.Echo.Header)
			if got.flags != "01" {
				t.Errorf("the flags are %s", got.flags)
			}
			list := s.of(got.trace, 2)
			version := "1.1"
			if http2 {
				version = "2"
			}
			list[0].want(t, map[string]any{
				"http.request.method": "GET", "url.path": path, "url.query": "q=1&token=REDACTED&Sig=REDACTED", "url.scheme": scheme,
				"server.address": "a.test", "client.address": "127.0.0.1", "network.protocol.version": version, "user_agent.original": "agent/1",
				"http.response.status_code": 200, "k8s.namespace.name": "default", "k8s.service.name": "a", "headgate.request_id": r.Echo.Header.Get("X-Request-Id"),
			})
			list[1].want(t, map[string]any{"http.request.method": "GET", "server.address": "127.0.0.1", "http.response.status_code": 200, "http.request.resend_count": nil})
			if list[0].Parent != "" || list[0].Remote || list[1].Parent != list[0].ID || list[1].ID != got.span {
				t.Errorf("the backend got %+v; spans: %+v", got, list)
			}
			if list[1].Start < list[0].Start || list[1].End > list[0].End || list[0].Status != 0 || list[1].Name != "GET" {
				t.Errorf("spans: %+v", list)
			}
		})
	}
	// The port of a Host header is what a client says.
	for port, want := range map[string]any{"": 80, ":8080": 8080, ":99999999999999999999999": 80} {
		got := parentOf(t, g.Do(headgatetest.Request{Host: "a.test" + port, Path: "/shop/port"}).WantStatus(t, 200).Echo.Header)
		s.of(got.trace, 2)[0].want(t, map[string]any{"server.port": want})
	}
	list := s.of(parentOf(t, g.Get("a.test", "/shop/1").Echo.Header).trace, 2)
	if list[0].Name != "GET /shop" || list[0].Attributes["http.route"] != "/shop" || list[0].Attributes["k8s.ingress.name"] != "shop" {
		t.Errorf("spans: %+v", list)
	}
	for path, status := range map[string]int{"/moved": 301, "/dead": 503} {
		g.Do(headgatetest.Request{Host: "a.test", Path: path, Header: http.Header{"Traceparent": {sampled}}}).WantStatus(t, status)
		one := s.of(clients, 1)[0]
		one.want(t, map[string]any{"http.response.status_code": status})
		if failed := status >= 500; (one.Status == 2) != failed || (one.Attributes["error.type"] != nil) != failed {
			t.Errorf("%s: %+v", path, one)
		}
		s.list = nil
	}
}

// Tries of backends have spans of their own, of which the last one is the parent of what the backend does.
func TestTries(t *testing.T) {
	t.Parallel()
	g := start(t, served("two", "127.0.0.1:1", headgatetest.StartEcho(t, "two"))+headgatetest.Ingress("two", "two.test", "/", "two"))
	s := spansOf(t, g)
	headgatetest.Eventually(t, "a retry", func() bool {
		got := parentOf(t, g.Get("two.test", "/").WantStatus(t, 200).Echo.Header)
		headgatetest.Eventually(t, "the request's span", func() bool {
			s.take()
			for _, one := range s.list {
				if one.Trace == got.trace && one.Kind == server {
					return true
				}
			}
			return false
		})
		n := 0
		for _, one := range s.list {
			if one.Trace == got.trace {
				n++
			}
		}
		list := s.of(got.trace, n)
		if n == 2 {
			return false
		}
		list[1].want(t, map[string]any{"server.address": "127.0.0.1", "server.port": 1, "http.response.status_code": 502, "error.type": 502})
		list[2].want(t, map[string]any{"http.response.status_code": 200, "http.request.resend_count": 1})
		if n != 3 || list[1].Status != 2 || list[2].Status != 0 || list[0].Status != 0 || list[2].ID != got.span || list[1].ID == list[2].ID ||
			list[1].Parent != list[0].ID || list[2].Parent != list[0].ID || list[2].Start < list[1].Start {
			t.Errorf("the backend got %+v; spans: %+v", got, list)
		}
		return true
	})
}

const (
	clients   = "4bf92f3577b34da6a3ce929d0e0e4736"
	theirs    = "00f067aa0ba902b7"
	sampled   = "00-" + clients + "-" + theirs + "-01"
	unsampled = "00-" + clients + "-" + theirs + "-00"
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

// The annotations act on their routes alone, and at once: the collector is there.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{
		Timing: headgatetest.Hasty(),
		Manifests: served("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "a.test", "/", "a") + headgatetest.Ingress("api", "a.test", "/api", "a") +
			headgatetest.Config(collector),
	})
	s := spansOf(t, g)
	none := func(path string) {
		t.Helper()
		if sent := g.Get("a.test", path).WantStatus(t, 200).Echo.Header.Get("Traceparent"); sent != "" {
			t.Errorf("%s: the backend got %s", path, sent)
		}
	}
	none("/")
	none("/api")
	reloads := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Ingress("api", "a.test", "/api", "a", annotated, "opentelemetry-operation-name: $request_method ${service_name} $uri $http_x"))
	none("/")
	got := parentOf(t, g.Do(headgatetest.Request{Host: "a.test", Path: "/api/x", Header: http.Header{"X": {"\"\\é\t"}}}).WantStatus(t, 200).Echo.Header)
	if name := s.of(got.trace, 2)[0].Name; name != "GET a /api/x \"\\é" {
		t.Errorf("the name is %q", name)
	}
	g.Apply(headgatetest.Ingress("api", "a.test", "/api", "a"))
	none("/api")
	if n := g.Value(g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads", n)
	}
	// Without a collector there are neither spans nor decisions.
	g.ApplyReloading(headgatetest.Config(on))
	none("/")
}

// The call of an auth service has a span of its own, which the service gets as its parent.
func TestExternalAuthentication(t *testing.T) {
	t.Parallel()
	var asked, denied atomic.Value
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/deny" {
			denied.Store(r.Header.Get("Traceparent"))
			w.WriteHeader(http.StatusForbidden)
			return
		}
		asked.Store(r.Header.Get("Traceparent"))
	}))
	g := start(t, served("auth", service)+
		headgatetest.Ingress("open", "in.test", "/", "a", "auth-url: http://auth.default.svc.cluster.local/check")+
		headgatetest.Ingress("shut", "out.test", "/", "a", "auth-url: http://auth.default.svc.cluster.local/deny"))
	s := spansOf(t, g)
	got := parentOf(t, g.Get("in.test", "/x").WantStatus(t, 200).Echo.Header)
	list := s.of(got.trace, 3)
	at := parentOf(t, http.Header{"Traceparent": {asked.Load().(string)}})
	list[1].want(t, map[string]any{"http.request.method": "GET", "http.response.status_code": 200, "server.address": "auth.default.svc.cluster.local"})
	if at.trace != got.trace || list[1].ID != at.span || list[2].ID != got.span || list[1].Parent != list[0].ID || list[1].Name != "external authentication" ||
		list[1].Start < list[0].Start || list[2].Start < list[1].End {
		t.Errorf("the service got %+v, the backend %+v; spans %+v", at, got, list)
	}

	g.Get("out.test", "/x").WantStatus(t, 403)
	at = parentOf(t, http.Header{"Traceparent": {denied.Load().(string)}})
	list = s.of(at.trace, 2)
	list[0].want(t, map[string]any{"http.response.status_code": 403})
	list[1].want(t, map[string]any{"http.response.status_code": 403, "error.type": nil})
	if list[1].ID != at.span || list[1].Status != 0 {
		t.Errorf("the service got %+v; spans %+v", at, list)
	}
}

// No span is lost at a reload, nor when the workers of one end.
func TestReload(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	s := spansOf(t, g)
	const each = 150
	sent := 0
	for i := range 4 {
		for range each {
			g.Get("a.test", "/").WantStatus(t, 200)
			sent++
		}
		g.ApplyReloading(headgatetest.Config(collector, on, fmt.Sprintf("worker-shutdown-timeout: %ds", 10+i)))
	}
	headgatetest.Eventually(t, fmt.Sprintf("%d spans", 2*sent), func() bool {
		s.take()
		return len(s.list) >= 2*sent
	})
	if len(s.list) != 2*sent || s.dropped != 0 {
		t.Errorf("%d spans of %d requests, %d dropped", len(s.list), sent, s.dropped)
	}
}

// What finds no room is dropped and counted, and no request waits for it.
func TestQueue(t *testing.T) {
	t.Parallel()
	g := start(t, "", "otel-max-queuesize: 10")
	s := spansOf(t, g)
	// No report is taken until there is more than the shared memory holds.
	const asked = 4000
	long := strings.Repeat("\"", 3000)
	client := g.NewClient(false)
	for range asked {
		r, err := g.Try(client, headgatetest.Request{Host: "a.test", Path: "/?" + long, Header: http.Header{"User-Agent": {long}, "Traceparent": {sampled}}})
		if err != nil || r.Status != 200 {
			t.Fatal(err, r.Status)
		}
	}
	headgatetest.Eventually(t, "all spans", func() bool {
		s.take()
		return len(s.list)+s.dropped >= 2*asked
	})
	if len(s.list)+s.dropped != 2*asked || s.dropped == 0 || len(s.list) == 0 {
		t.Errorf("%d spans and %d dropped of %d", len(s.list), s.dropped, 2*asked)
	}
	// There is room again.
	s.list, s.dropped = nil, 0
	s.of(parentOf(t, g.Get("a.test", "/").WantStatus(t, 200).Echo.Header).trace, 2)
	if s.dropped != 0 {
		t.Errorf("%d spans are dropped although there is room", s.dropped)
	}
}

// A change of a key acts on the next request. Only whether there is a collector at all takes a reload.
func TestKeysChangeLive(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{
		Timing:    headgatetest.Hasty(),
		Manifests: served("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "a.test", "/", "a") + headgatetest.Config(on),
	})
	s := spansOf(t, g)
	ask := func() string {
		t.Helper()
		return g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"Traceparent": {sampled}}}).WantStatus(t, 200).Echo.Header.Get("Traceparent")
	}
	if got := ask(); got != sampled {
		t.Errorf("without a collector the backend got %s", got)
	}
	g.ApplyReloading(headgatetest.Config(on, collector))
	if got := ask(); got == sampled || !strings.Contains(got, clients) {
		t.Errorf("with a collector the backend got %s", got)
	}
	s.of(clients, 2)
	reloads := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Config(on, collector, "opentelemetry-trust-incoming-span: false"))
	if got := ask(); strings.Contains(got, clients) {
		t.Errorf("without trust the backend got %s", got)
	}
	g.Apply(headgatetest.Config(on, collector, "opentelemetry-operation-name: $request_method of $host"))
	s.list = nil
	ask()
	if name := s.of(clients, 2)[0].Name; name != "GET of a.test" {
		t.Errorf("the name is %q", name)
	}
	g.Apply(headgatetest.Config(on, collector, "otel-max-queuesize: 1"))
	s.list = nil
	ask()
	headgatetest.Eventually(t, "a dropped span", func() bool {
		s.take()
		return s.dropped > 0 || len(s.list) > 1
	})
	g.Apply(headgatetest.Config(collector))
	if got := ask(); got != sampled {
		t.Errorf("with tracing off the backend got %s", got)
	}
	if n := g.Value(g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads", n)
	}
	g.ApplyReloading(headgatetest.Config(on, "otlp-collector-port: 1"))
	if got := ask(); got != sampled {
		t.Errorf("without a collector the backend got %s", got)
	}
}
