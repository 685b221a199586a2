package modsecurity_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestBodiesDoNotPass: what rules refuse in a query or at the end of a body reaches no backend and
// no mirror, however the path passes requests on. Error services get the query.
func TestBodiesDoNotPass(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	service := func(name string, h http.HandlerFunc) string {
		return headgatetest.Service(name) + headgatetest.Endpoints(name, headgatetest.StartBackend(t, h))
	}
	counts := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "evil") || strings.Contains(r.RequestURI, "evil") || strings.Contains(r.Header.Get("X-Original-URI"), "evil") {
			reached.Add(1)
		}
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}
	refuses := rules("SecRuleEngine On", "SecRequestBodyAccess On", `SecRule REQUEST_BODY|QUERY_STRING "@contains evil" "id:1,phase:2,deny,status:406"`)
	paths := map[string][]string{
		"plain":     nil,
		"unkept":    {"proxy-request-buffering: off"},
		"spooled":   {"client-body-buffer-size: 1k"},
		"paged":     {"custom-http-errors: 406,502", "default-backend: pages"},
		"checked":   {"auth-url: http://auth.default.svc.cluster.local/ok"},
		"mirrored":  {"mirror-target: http://mirror.default.svc.cluster.local$request_uri"},
		"rewritten": {"rewrite-target: /other"},
		"long":      {"proxy-http-version: 1.0"},
		"upstream":  {"upstream-hash-by: $remote_addr"},
		"sticky":    {"affinity: cookie"},
		"limited":   {"limit-rps: 100000"},
	}
	manifests := service("counts", counts) + service("pages", func(w http.ResponseWriter, r *http.Request) {
		counts(w, r)
		w.WriteHeader(http.StatusNotAcceptable)
	}) + service("auth", func(http.ResponseWriter, *http.Request) {}) + service("mirror", counts)
	for name, annotations := range paths {
		manifests += strings.ReplaceAll(ingress(name, append(annotations, refuses, "proxy-body-size: 20m")...), "{name: a,", "{name: counts,")
	}
	g := start(t, headgatetest.Options{Manifests: manifests}, "use-http3: true")
	ask := func(r headgatetest.Request, name, body string, chunked bool) int {
		r.Method, r.Host, r.Header = http.MethodPost, name+".test", browser()
		r.Header.Set("Content-Type", "text/plain")
		if r.Body = strings.NewReader(body); chunked {
			r.Body = io.MultiReader(r.Body)
		}
		return g.Do(r).Status
	}
	for name := range paths {
		if got := ask(headgatetest.Request{}, name, "good", false); got != http.StatusOK {
			t.Errorf("%s: status %d without an attack", name, got)
		}
		for _, r := range g.Protocols() {
			for _, size := range []int{0, 40 << 10, 3 << 20} {
				for _, chunked := range []bool{false, true} {
					if got := ask(r, name, strings.Repeat("a", size)+"evil", chunked); got != http.StatusNotAcceptable {
						t.Errorf("%s: status %d for %d bytes, chunked %v, by %+v", name, got, size, chunked, r)
					}
				}
			}
			r.Path = "/fails?evil"
			if got := ask(r, name, "good", false); got != http.StatusNotAcceptable {
				t.Errorf("%s: status %d for a query, by %+v", name, got, r)
			}
		}
		if n := reached.Swap(0); n != 0 && name != "paged" {
			t.Errorf("%s: %d refused requests reached a service", name, n)
		}
	}
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	g.Do(headgatetest.Request{Host: "plain.test", Path: "/?evil", Header: header}).WantStatus(t, http.StatusNotAcceptable)
}
