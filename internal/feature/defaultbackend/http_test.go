package defaultbackend_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// serving is a Service with one endpoint. That answers with the status of X-Want, and an
// error service with that of X-Code, and says what it was asked.
func serving(t *testing.T, name string, http2 bool) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		status, err := strconv.Atoi(h.Get("X-Want") + h.Get("X-Code"))
		if h.Get("X-Code") != "" {
			status, err = strconv.Atoi(h.Get("X-Code"))
		}
		if err == nil {
			w.WriteHeader(status)
		}
		fmt.Fprintf(w, "%s %s %s code=%s original=%s of=%s/%s/%s", name, r.Method, r.RequestURI,
			h.Get("X-Code"), h.Get("X-Original-URI"), h.Get("X-Namespace"), h.Get("X-Ingress-Name"), h.Get("X-Service-Name"))
	}))
	if http2 {
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
	}
	server.Start()
	t.Cleanup(server.Close)
	return headgatetest.Service(name) + headgatetest.Endpoints(name, strings.TrimPrefix(server.URL, "http://"))
}

// ask asks for a path of a.test. Want is "STATUS BODY", or "STATUS" for a page of NGINX.
func ask(t *testing.T, g *headgatetest.Instance, path, status, want string) {
	t.Helper()
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		r := g.Do(headgatetest.Request{Host: "a.test", Path: path, Scheme: scheme, HTTP2: http2, Header: http.Header{"X-Want": {status}}})
		got := fmt.Sprintf("%d %s", r.Status, r.Body)
		if strings.HasPrefix(r.Body, "<html>") {
			got = strconv.Itoa(r.Status)
		}
		if got != want {
			t.Errorf("%s with %s by %s: got %s, want %s", path, status, r.Proto, got, want)
		}
	})
}

// Without an error service, the built-in default backend answers 404.
func TestBuiltInDefaultBackend(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: serving(t, "a", false) + serving(t, "pages", false) +
		headgatetest.Config("custom-http-errors: 404,500,503") +
		headgatetest.Ingress("key", "a.test", "/key", "a") + headgatetest.Ingress("empty", "a.test", "/empty", "a", "custom-http-errors: ") +
		headgatetest.Ingress("own", "a.test", "/own", "a", "custom-http-errors: 500", "default-backend: pages") +
		headgatetest.Ingress("page", "a.test", "/page", "a", "default-backend: pages") +
		headgatetest.Ingress("missing", "a.test", "/missing", "a", "default-backend: nothing") +
		headgatetest.Ingress("none", "a.test", "/none", "nothing") +
		headgatetest.Ingress("root", "b.test", "/root", "a", "default-backend: pages")})
	ask(t, g, "/key", "200", "200 a GET /key code= original= of=//")
	for _, path := range []string{"/key", "/empty", "/missing"} {
		ask(t, g, path, "404", "404")
		ask(t, g, path, "500", "404")
		ask(t, g, path, "503", "404")
		ask(t, g, path, "502", "502 a GET "+path+" code= original= of=//")
	}
	ask(t, g, "/none", "", "404")
	ask(t, g, "/own", "404", "404 a GET /own code= original= of=//")
	ask(t, g, "/own", "500", "500 pages GET / code=500 original=/own of=default/own/a")
	ask(t, g, "/page", "404", "404 pages GET / code=404 original=/page of=default/page/a")
	// Paths without a rule: of the first Ingress of a host.
	r := g.Get("b.test", "/other?x=1")
	if want := "pages GET /?x=1 code=404 original=/other?x=1 of=default/root/"; r.Status != 404 || r.Body != want {
		t.Errorf("a path without a rule: got %d %s, want %s", r.Status, r.Body, want)
	}
	g.Get("c.test", "/").WantStatus(t, 404)
}

func TestOwnErrorsAlone(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), DefaultBackend: "common", Manifests: serving(t, "a", false) + serving(t, "pages", false) + serving(t, "common", false) +
		headgatetest.Config("custom-http-errors: 404,503", "disable-proxy-intercept-errors: true") + headgatetest.Service("none") +
		headgatetest.Ingress("key", "a.test", "/key", "a", "default-backend: pages") +
		headgatetest.Ingress("without", "a.test", "/without", "none") +
		headgatetest.Ingress("intercepts", "a.test", "/intercepts", "a", "disable-proxy-intercept-errors: false") +
		headgatetest.Ingress("list", "a.test", "/list", "a", "custom-http-errors: 500") +
		headgatetest.Ingress("both", "a.test", "/both", "a", "custom-http-errors: 500", "disable-proxy-intercept-errors: true")})
	ask(t, g, "/key", "503", "503 a GET /key code= original= of=//")
	ask(t, g, "/without", "", "503 common GET / code=503 original=/without of=default/without/none")
	ask(t, g, "/intercepts", "404", "404 common GET / code=404 original=/intercepts of=default/intercepts/a")
	ask(t, g, "/list", "500", "500 common GET / code=500 original=/list of=default/list/a")
	ask(t, g, "/both", "500", "500 a GET /both code= original= of=//")
	// The default backend's own errors are its own, and unknown names are not asked twice.
	if r := g.Get("unknown.test", "/x"); r.Body != "common GET /x code= original= of=//" {
		t.Errorf("an unknown name: %d %s", r.Status, r.Body)
	}
}

// Errors of other protocols, what a page has of the route's other features, and what costs
// a reload.
func TestErrorsElsewhere(t *testing.T) {
	t.Parallel()
	copies := make(chan string, 100)
	mirror := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { copies <- r.RequestURI }))
	errors := []string{"default-backend: pages", "custom-http-errors: 404"}
	ingress := func(path string, annotations ...string) string {
		return headgatetest.Ingress(path, "a.test", "/"+path, "a", append(annotations, errors...)...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: serving(t, "a", false) + serving(t, "b", false) + serving(t, "grpc", true) + serving(t, "pages", false) +
		ingress("plain") + ingress("cors", "enable-cors: true") + ingress("mirror", "mirror-target: http://"+mirror+"$request_uri") +
		headgatetest.Ingress("grpc", "a.test", "/grpc", "grpc", append(errors, "backend-protocol: GRPC")...) +
		headgatetest.Ingress("canary", "a.test", "/plain", "b", "canary: true", "canary-by-header: X-New")})
	page := func(path string) string {
		return fmt.Sprintf("404 pages GET / code=404 original=/%s of=default/%s/a", path, path)
	}
	ask(t, g, "/plain", "404", page("plain"))
	ask(t, g, "/grpc", "404", strings.Replace(page("grpc"), "/a", "/grpc", 1))
	ask(t, g, "/mirror", "404", page("mirror"))
	headgatetest.Eventually(t, "a copy of each request", func() bool { return len(copies) == 3 })
	for range 3 {
		if got := <-copies; got != "/mirror" {
			t.Errorf("a copy of %s", got)
		}
	}
	r := g.Do(headgatetest.Request{Host: "a.test", Path: "/plain", Header: http.Header{"X-Want": {"404"}, "X-New": {"always"}}})
	if got := fmt.Sprint(r.Status, " ", r.Body); got != page("plain") {
		t.Errorf("a canary's error: %s", got)
	}
	r = g.Do(headgatetest.Request{Host: "a.test", Path: "/cors", Header: http.Header{"X-Want": {"404"}, "Origin": {"https://o.test"}}})
	if got := fmt.Sprint(r.Status, " ", r.Body, r.Header.Get("Access-Control-Allow-Origin")); got != page("cors")+"*" {
		t.Errorf("a page for another origin: %s", got)
	}
	before := g.Value(g.Metrics.Reloads)
	g.Apply(ingress("another") + ingress("one-more", "proxy-connect-timeout: 7"))
	g.Apply(headgatetest.Ingress("other-page", "a.test", "/other-page", "a", "default-backend: b", "custom-http-errors:  404 ,"))
	ask(t, g, "/another", "404", page("another"))
	ask(t, g, "/other-page", "404", "404 b GET / code=404 original=/other-page of=default/other-page/a")
	if n := g.Value(g.Metrics.Reloads) - before; n != 0 {
		t.Errorf("%v reloads for statuses that NGINX catches already", n)
	}
	g.ApplyReloading(headgatetest.Ingress("new", "a.test", "/new", "a", "default-backend: b", "custom-http-errors: 404,405"))
	ask(t, g, "/new", "405", "405 b GET / code=405 original=/new of=default/new/a")
}

// TestErrorsOfTheDefaultBackend: where it answers an error for what no rule has, it is asked again for the
// page of that error.
func TestErrorsOfTheDefaultBackend(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), DefaultBackend: "common", Manifests: serving(t, "a", false) + serving(t, "common", false) +
		headgatetest.Config("custom-http-errors: 404") + headgatetest.Ingress("web", "a.test", "/web", "a")})
	ask(t, g, "/none?x=1", "404", "404 common GET /?x=1 code=404 original=/none?x=1 of=default/web/common")
	ask(t, g, "/none", "500", "500 common GET /none code= original= of=//")
	ask(t, g, "/none", "200", "200 common GET /none code= original= of=//")
	r := g.Do(headgatetest.Request{Host: "unknown.test", Path: "/x", Header: http.Header{"X-Want": {"404"}}})
	if want := "common GET / code=404 original=/x of=//common"; r.Status != 404 || r.Body != want {
		t.Errorf("an unknown name: %d %s, want %s", r.Status, r.Body, want)
	}
}
