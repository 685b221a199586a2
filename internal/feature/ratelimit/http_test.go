package ratelimit_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// once lets a client send one request in a minute.
var once = []string{"limit-rpm: 1", "limit-burst-multiplier: 0"}

func backend(t *testing.T) string {
	return headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a"))
}

// What comes before the limits, and what comes behind.
func TestOrder(t *testing.T) {
	t.Parallel()
	const list = "allowlist-source-range: 192.0.2.1"
	ingress := func(name, service string, annotations ...string) string {
		return headgatetest.Ingress(name, name+".test", "/", service, append(annotations, once...)...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: backend(t) + headgatetest.Service("silent") + headgatetest.Endpoints("silent") +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n" +
		ingress("redirect", "a", "permanent-redirect: https://new.test/") + ingress("silent", "silent") +
		ingress("password", "a", "auth-type: basic", "auth-secret: users") + ingress("list", "a", list) + ingress("any", "a", list, "satisfy: any") +
		ingress("cors", "a", "enable-cors: true") + ingress("long", "a", "proxy-body-size: 2k") +
		headgatetest.Ingress("part", "part.test", "/one", "a", once...) + headgatetest.Ingress("rest", "part.test", "/", "a")})
	statuses := func(host, path string, want ...int) {
		t.Helper()
		for i, status := range want {
			if got := g.Get(host, path).Status; got != status {
				t.Errorf("request %d to %s%s: status %d, want %d", i+1, host, path, got, status)
			}
		}
	}
	statuses("redirect.test", "/", 301, 301, 301)
	statuses("silent.test", "/", 503, 503)
	g.Apply(headgatetest.Endpoints("silent", headgatetest.StartEcho(t, "silent")))
	statuses("silent.test", "/", 200, 503)
	statuses("password.test", "/", 401, 503)
	statuses("list.test", "/", 403, 503)
	statuses("any.test", "/", 403, 503)
	statuses("cors.test", "/", 200)
	if r := g.Do(headgatetest.Request{Host: "cors.test", Header: http.Header{"Origin": {"https://o.test"}}}).WantStatus(t, 503); r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a refusal has the headers %v", r.Header)
	}
	g.Do(headgatetest.Request{Method: "POST", Host: "long.test", Body: strings.NewReader(strings.Repeat("x", 3000))}).WantStatus(t, 413)
	// What another path leads to counts there, however the path is written.
	statuses("part.test", "/one", 200)
	for _, path := range []string{"/one", "/one/x", "//one", "/two/../one", "/%6fne"} {
		statuses("part.test", path, 503)
	}
	statuses("part.test", "/two", 200, 200)
	statuses("part.test", "/two/..;/one", 400)
}

// Over each protocol a request counts once, and is refused with the status of the key.
func TestProtocols(t *testing.T) {
	t.Parallel()
	manifests := backend(t) + headgatetest.Config("limit-req-status-code: 429", "limit-conn-zone-variable: $http_x_client", "use-http3: true")
	clients := map[string]func(g *headgatetest.Instance, header http.Header) headgatetest.Response{}
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		clients[fmt.Sprint(scheme, http2)] = func(g *headgatetest.Instance, header http.Header) headgatetest.Response {
			return g.Do(headgatetest.Request{Host: "a.test", Scheme: scheme, HTTP2: http2, Header: header})
		}
	})
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: manifests + headgatetest.Ingress("web", "a.test", "/", "a", "limit-rpm: 1", "limit-burst-multiplier: 2")})
	if g.HTTP3() {
		clients["http3"] = func(g *headgatetest.Instance, header http.Header) headgatetest.Response {
			client := g.NewHTTP3Client()
			defer client.CloseIdleConnections()
			r, err := g.Try(client, headgatetest.Request{Host: "a.test", Scheme: "https", Header: header})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	for name, ask := range clients {
		for i, want := range []int{200, 200, 200, 429, 429} {
			if got := ask(g, http.Header{"X-Client": {name}}).Status; got != want {
				t.Errorf("%s: request %d: status %d, want %d", name, i+1, got, want)
			}
		}
		for range 5 {
			ask(g, nil).WantStatus(t, 200)
		}
	}
	long := strings.Repeat("x", 3000)
	for _, want := range []int{200, 200, 200, 429} {
		clients["httpfalse"](g, http.Header{"X-Client": {long}}).WantStatus(t, want)
	}
	clients["httpfalse"](g, http.Header{"X-Client": {long + "y"}}).WantStatus(t, 200)
}

// A change of a limit takes no reload, and what was counted stays, over reloads too.
func TestCountsStay(t *testing.T) {
	t.Parallel()
	limited := func(annotations ...string) string {
		return headgatetest.Ingress("web", "a.test", "/", "a", annotations...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: backend(t) + limited()})
	g.Get("a.test", "/").WantStatus(t, 200)
	before := g.Value(g.Metrics.Reloads)
	// A profile with a log phase, which limit-connections takes, costs no reload either.
	g.Apply(limited(append(once, "limit-connections: 1")...))
	g.Get("a.test", "/").WantStatus(t, 200)
	g.Get("a.test", "/").WantStatus(t, 503)
	g.Apply(headgatetest.Config("limit-req-status-code: 429"))
	g.Get("a.test", "/").WantStatus(t, 429)
	if got := g.Value(g.Metrics.Reloads); got != before {
		t.Errorf("%d reloads, before %d", got, before)
	}
	g.ApplyReloading(headgatetest.Config("keep-alive-requests: 77"))
	g.Get("a.test", "/").WantStatus(t, 503)
	g.Apply(limited("limit-rpm: 1", "limit-burst-multiplier: 3"))
	g.Get("a.test", "/").WantStatus(t, 200)
}

// A namespace whose counters are full has no limits for further clients, and others keep
// theirs.
func TestFull(t *testing.T) {
	t.Parallel()
	const name = "filling"
	features := append(all.Features(), feature.Feature{
		Name: name,
		Route: func(_ feature.Values, out *feature.RouteOut) {
			if out.Route.Origin.Ingress == "fill" {
				feature.Add(out.Route, name, struct{}{})
			}
		},
		Lua: featuretest.Module(name, `
local owners = require "headgate.feature.rate_limit.owners"
local requests = require "headgate.request"
return { rewrite = function(_, request)
    for name, reason in pairs({ hg_buckets = "requests", hg_connections = "connections", hg_windows = "replicas" }) do
        local dictionary, made = ngx.shared[name], 0
        -- The end is that of a window which is not over.
        local key = "twelve bytes9:999999999:"
        while owners.reserve(dictionary, reason, "default", key .. made, function() return false end) do
            dictionary:set(key .. made, 1e15)
            made = made + 1
        end
    end
    return requests.finish(request, 204)
end }`),
	})
	other := strings.NewReplacer("metadata: {", "metadata: {namespace: other, ", "metadata:\n", "metadata:\n  namespace: other\n").Replace(
		headgatetest.Ingress("web", "other.test", "/", "a", once...) + headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "other")))
	g := headgatetest.Start(t, headgatetest.Options{Features: features, Timing: headgatetest.Hasty(), LimitStore: away, Manifests: backend(t) + other +
		headgatetest.Ingress("window", "window.test", "/", "a", "global-rate-limit: 1", "global-rate-limit-window: 24h", byHeader) +
		headgatetest.Config("limit-conn-zone-variable: $http_x_client") + headgatetest.Ingress("fill", "fill.test", "/", "a") +
		headgatetest.Ingress("web", "a.test", "/", "a", append(once, "limit-connections: 1")...)})
	ask := func(host, client string, want int) {
		t.Helper()
		g.Do(headgatetest.Request{Host: host, Header: http.Header{"X-Client": {client}}}).WantStatus(t, want)
	}
	ask("a.test", "early", 200)
	ask("a.test", "early", 503)
	ask("window.test", "early", 200)
	ask("window.test", "early", 429)
	g.Get("fill.test", "/").WantStatus(t, 204)
	ask("window.test", "early", 429)
	ask("window.test", "late", 200)
	ask("window.test", "late", 200)
	ask("a.test", "early", 503)
	ask("a.test", "late", 200)
	ask("a.test", "late", 200)
	ask("other.test", "late", 200)
	ask("other.test", "late", 503)
	if n, err := testutil.GatherAndCount(g.Metrics.Registry, "headgate_unlimited_requests_total"); n != 3 || err != nil {
		t.Errorf("%d series of headgate_unlimited_requests_total, %v", n, err)
	}
	counts := g.State().Uncounted
	if counts["requests"]["default"] != 3 || counts["connections"]["default"] != 3 || counts["replicas"]["default"] < 2 || counts["requests"]["other"] != 0 {
		t.Errorf("requests that were not counted: %v", counts)
	}
	headgatetest.Eventually(t, "the log says so", func() bool {
		return strings.Contains(g.Log.String(), "namespace default: no room for a further counter of")
	})
}

// A response takes the time that the rate gives it, behind what is not limited.
func TestRate(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const size = 60 << 10
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, size))
	}))
	var manifests strings.Builder
	host := func(name string, annotations ...string) {
		manifests.WriteString(headgatetest.Ingress(name, name+".test", "/", "a", annotations...))
	}
	host("slow", "limit-rate: 20", "proxy-buffering: on")
	host("after", "limit-rate: 40", "limit-rate-after: 50", "proxy-buffering: on")
	host("open")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", service) + manifests.String()})
	for host, least := range map[string]time.Duration{"slow.test": time.Second, "after.test": 0, "open.test": 0} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			start := time.Now()
			r := g.Do(headgatetest.Request{Host: host, Scheme: scheme, HTTP2: http2}).WantStatus(t, 200)
			if took := time.Since(start); took < least || len(r.Body) != size {
				t.Errorf("%s over %s, HTTP/2 %v: %d bytes in %v, want at least %v", host, scheme, http2, len(r.Body), took, least)
			}
		})
	}
}

// A change of a key takes no reload.
func TestKeys(t *testing.T) {
	t.Parallel()
	waiting, release := make(chan struct{}), make(chan struct{})
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			waiting <- struct{}{}
			<-release
		}
		_, _ = w.Write(make([]byte, 60<<10))
	}))
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", service) + headgatetest.Config() +
		headgatetest.Ingress("requests", "requests.test", "/", "a", once...) + headgatetest.Ingress("connections", "connections.test", "/", "a", "limit-connections: 1") +
		headgatetest.Ingress("rate", "rate.test", "/", "a", "proxy-buffering: on")})
	before := g.Value(g.Metrics.Reloads)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = g.Try(g.NewClient(false), headgatetest.Request{Host: "connections.test", Header: http.Header{"X-Wait": {"yes"}}})
	}()
	<-waiting
	g.Get("requests.test", "/").WantStatus(t, 200)
	g.Get("requests.test", "/").WantStatus(t, 503)
	g.Get("connections.test", "/").WantStatus(t, 503)
	g.Apply(headgatetest.Config("limit-req-status-code: 429", "limit-conn-status-code: 430"))
	g.Get("requests.test", "/").WantStatus(t, 429)
	g.Get("connections.test", "/").WantStatus(t, 430)
	g.Apply(headgatetest.Config("limit-conn-zone-variable: $http_x_client"))
	g.Get("requests.test", "/").WantStatus(t, 200)
	g.Get("connections.test", "/").WantStatus(t, 200)
	close(release)
	<-ended
	took := func() time.Duration {
		start := time.Now()
		g.Get("rate.test", "/").WantStatus(t, 200)
		return time.Since(start)
	}
	g.Apply(headgatetest.Config("limit-rate: 20"))
	if got := took(); got < time.Second {
		t.Errorf("60 KiB took %v at 20 KiB a second", got)
	}
	g.Apply(headgatetest.Config("limit-rate: 1", "limit-rate-after: 100"))
	if got := took(); got > 50*time.Second {
		t.Errorf("60 KiB took %v, though the first 100 are not limited", got)
	}
	if got := g.Value(g.Metrics.Reloads); got != before {
		t.Errorf("%d reloads, before %d", got, before)
	}
}
