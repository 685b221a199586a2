package opentelemetry_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
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
	for query, want := range map[string]string{
		"private_token=a&SessionID=b&session=c&otp=123456&page=2": "private_token=REDACTED&SessionID=REDACTED&session=REDACTED&otp=REDACTED&page=2",
		"%74oken=a&toke%6E=b&%54%4f%4b%45%4e=c&a%26token=d":       "%74oken=REDACTED&toke%6E=REDACTED&%54%4f%4b%45%4e=REDACTED&a%26token=d",
		"token=&token=a=b&token&%zz=1&%=2&tokens=3":               "token=REDACTED&token=REDACTED&token&%zz=1&%=2&tokens=3",
	} {
		got := parentOf(t, g.Do(headgatetest.Request{Host: "a.test", Path: "/shop/q?" + query}).WantStatus(t, 200).Echo.Header)
		s.of(got.trace, 2)[0].want(t, map[string]any{"url.query": want})
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

// A change of a key acts on the next request. Only whether there is a collector at all takes a reload.
func TestKeysChangeLive(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
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
