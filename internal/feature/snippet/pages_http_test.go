package snippet_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A page of the host, instead of an error, is a request like any other: what guards its path
// guards it.
func TestPages(t *testing.T) {
	t.Parallel()
	const c, s = "configuration-snippet", "server-snippet"
	password := []string{"auth-type: basic", "auth-secret: users", "auth-secret-type: auth-map"}
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/missing") {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Header().Set("X-Page", r.Method+" "+r.RequestURI+" "+r.Host+" "+r.Header.Get("X-Real-IP")+" "+r.Header.Get("X-Forwarded-Proto")+r.Header.Get("X-Headgate-Page"))
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: allowed + headgatetest.Service("web") + headgatetest.Endpoints("web", backend) +
		users +
		of("open", c, `if ($uri = /closed) { return 403; } error_page 403 /page?of=$uri;`, "limit-connections: 2") +
		// The page is of another Ingress.
		of("guarded", c, `return 404; error_page 404 /secret;`) +
		headgatetest.Ingress("secret", "guarded.test", "/secret", "web", password...) +
		of("denied-root", c, `return 404; error_page 404 = /secret;`) +
		headgatetest.Ingress("denied-page", "denied-root.test", "/secret", "web", "denylist-source-range: 127.0.0.0/8") +
		// The password is for the page too.
		of("same", c, `if ($uri = /closed) { return 403; } proxy_intercept_errors on; error_page 403 404 =200 /page;`, password...) +
		of("inside", s, `location = /internal { internal; return 200 inside; } location /closed { return 403; } error_page 403 /internal;`) +
		// A page has no page.
		of("once", s, `error_page 404 /again; location /old { return 404; } location /again { return 404; }`) +
		of("moves", s, `error_page 403 /moved; location /moved { return 302 /new; } location /closed { return 403; }`)})
	known := http.Header{"Authorization": {"Basic YTpi"}}
	for _, one := range []struct {
		host, path, method string
		header             http.Header
		status             int
		page, body         string
	}{
		{host: "open", path: "/closed", status: 403, page: "GET /page?of=/closed open.test 127.0.0.1 SCHEME"},
		{host: "open", path: "/closed", method: "POST", status: 403, page: "GET /page?of=/closed open.test 127.0.0.1 SCHEME"},
		{host: "open", path: "/closed", method: "HEAD", status: 403, page: "HEAD /page?of=/closed open.test 127.0.0.1 SCHEME"},
		{host: "open", path: "/", header: http.Header{"X-Headgate-Page": {"404"}}, status: 200, page: "GET / open.test 127.0.0.1 SCHEME"},
		{host: "guarded", path: "/", status: 401},
		{host: "guarded", path: "/", header: known, status: 404, page: "GET /secret guarded.test 127.0.0.1 SCHEME"},
		{host: "denied-root", path: "/", status: 403},
		{host: "same", path: "/closed", header: known, status: 200, page: "GET /page same.test 127.0.0.1 SCHEME"},
		{host: "same", path: "/missing", header: known, status: 200, page: "GET /page same.test 127.0.0.1 SCHEME"},
		{host: "same", path: "/missing", status: 401},
		{host: "inside", path: "/closed", status: 403, body: "inside"},
		{host: "inside", path: "/internal", status: 404},
		{host: "inside", path: "/internal", header: http.Header{"X-Headgate-Page": {"403"}, "X-Headgate-Made": {"1"}}, status: 404},
		{host: "once", path: "/old", status: 404},
		{host: "moves", path: "/closed", status: 302},
	} {
		for _, scheme := range []string{"http", "https"} {
			r := g.Do(headgatetest.Request{Scheme: scheme, HTTP2: scheme == "https", Method: one.method, Host: one.host + ".test", Path: one.path, Header: one.header.Clone()})
			page := strings.ReplaceAll(one.page, "SCHEME", scheme)
			if r.Status != one.status || r.Header.Get("X-Page") != page || r.Header.Get("X-Headgate-Made") != "" || one.body != "" && r.Body != one.body {
				t.Errorf("%s %s://%s%s %v: %d %q, body %q; want %+v", one.method, scheme, one.host, one.path, one.header, r.Status, r.Header.Get("X-Page"), r.Body, one)
			}
		}
	}
}
