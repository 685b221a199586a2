package cors_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// names are the headers that the feature writes, in the order of defaults.
var names = []string{
	"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age",
	"Access-Control-Allow-Credentials", "Access-Control-Expose-Headers",
}

// corsHeaders are the headers of CORS in an answer.
func corsHeaders(r headgatetest.Response) []string {
	list := []string{}
	for _, name := range names {
		list = append(list, r.Header.Values(name)...)
	}
	return list
}

// defaults are the headers for an origin without other annotations.
func defaults(origin string) []string {
	return []string{
		origin, "GET, PUT, POST, DELETE, PATCH, OPTIONS",
		"DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization", "1728000", "true",
	}
}

// backend says what it thinks of CORS, and answers with the status asked for.
func backend(t *testing.T) string {
	t.Helper()
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Access-Control-Allow-Origin"] = []string{"http://backend.example", "again"}
		status, err := strconv.Atoi(r.Header.Get("X-Status"))
		if err != nil {
			status = 200
		}
		w.WriteHeader(status)
		fmt.Fprint(w, "backend")
	}))
	return headgatetest.Service("web") + headgatetest.Endpoints("web", address) + headgatetest.Endpoints("none") +
		headgatetest.Service("dead") + headgatetest.Endpoints("dead", headgatetest.Address(porttest.Free(t)))
}

// theirs are the headers of CORS that the backend writes.
var theirs = []string{"http://backend.example", "again"}

// both asks over HTTP/1.1 and over HTTP/2.
func both(g *headgatetest.Instance, method, host, path, origin, status string, check func(headgatetest.Request, headgatetest.Response)) {
	for _, http2 := range []bool{false, true} {
		r := headgatetest.Request{Method: method, Host: host, Path: path, HTTP2: http2, Header: http.Header{"X-Status": {status}}}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if http2 {
			r.Scheme = "https"
		}
		check(r, g.Do(r))
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	manifests, hosts := backend(t), map[string]string{}
	for _, c := range origins {
		if hosts[c.allow] == "" {
			name := fmt.Sprintf("h%d", len(hosts))
			hosts[c.allow] = name + ".test"
			manifests += headgatetest.Ingress(name, name+".test", "/", "web", "enable-cors: true", "cors-allow-origin: "+c.allow)
		}
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for _, c := range origins {
		origin := c.origin
		if hosts[c.allow] == hosts["*"] || c.allow == "http://o.example, *" {
			origin = "*"
		}
		for _, method := range []string{"GET", "OPTIONS"} {
			both(g, method, hosts[c.allow], "/", c.origin, "", func(r headgatetest.Request, a headgatetest.Response) {
				status, want := 200, theirs
				if c.want {
					want = defaults(origin)
				}
				if c.want && method == "OPTIONS" {
					status = 204
				}
				vary := ""
				if strings.Contains(c.allow, "://") && !strings.Contains(c.allow, ", *") && !strings.Contains(c.allow, "(") || c.allow == "null" {
					vary = "Origin"
				}
				if got := corsHeaders(a); a.Status != status || !slices.Equal(got, want) || a.Header.Get("Vary") != vary {
					t.Errorf("%q allowed, %s of %q (HTTP/2 %v): %d %v, want %d %q", c.allow, method, c.origin, r.HTTP2, a.Status, a.Header, status, want)
				}
			})
		}
	}
}

// Answers that Headgate makes have the headers too, and a preflight is answered
// before all that a route does.
func TestAnswersOfHeadgate(t *testing.T) {
	t.Parallel()
	const on = "enable-cors: true"
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) +
		headgatetest.Ingress("web", "a.test", "/web", "web", on, "proxy-body-size: 1k") + headgatetest.Ingress("plain", "a.test", "/plain", "web") +
		headgatetest.Ingress("off", "a.test", "/off", "web", "enable-cors: false") + headgatetest.Ingress("odd", "a.test", "/odd", "web", "enable-cors: x") +
		headgatetest.Ingress("dead", "a.test", "/dead", "dead", on) + headgatetest.Ingress("none", "a.test", "/none", "none", on) +
		headgatetest.Ingress("moved", "a.test", "/moved", "web", on, "permanent-redirect: https://b.test/") +
		headgatetest.Ingress("shut", "a.test", "/shut", "web", on, "auth-url: auth.test") +
		headgatetest.Ingress("root", "r.test", "/", "web", on, "app-root: /start")})
	for _, c := range []struct {
		host, path, status string
		want, preflight    int
	}{
		{"a.test", "/web", "", 200, 204}, {"a.test", "/web", "404", 404, 204}, {"a.test", "/web", "500", 500, 204},
		{"a.test", "/dead", "", 502, 204}, {"a.test", "/none", "", 503, 204}, {"a.test", "/moved", "", 301, 204},
		{"a.test", "/shut", "", 503, 503}, {"r.test", "/", "", 302, 204},
	} {
		for method, status := range map[string]int{"GET": c.want, "OPTIONS": c.preflight} {
			both(g, method, c.host, c.path, "http://o.example", c.status, func(r headgatetest.Request, a headgatetest.Response) {
				if got := corsHeaders(a); a.Status != status || !slices.Equal(got, defaults("*")) {
					t.Errorf("%s %s%s (HTTP/2 %v): %d %v, want %d", method, c.host, c.path, r.HTTP2, a.Status, a.Header, status)
				}
				if a.Status == 204 && (a.Body != "" || a.Header.Get("Content-Type") != "") {
					t.Errorf("%s%s: the preflight's answer has %v and the body %q", c.host, c.path, a.Header, a.Body)
				}
			})
		}
	}
	for _, path := range []string{"/plain", "/off", "/odd"} {
		both(g, "OPTIONS", "a.test", path, "http://o.example", "", func(r headgatetest.Request, a headgatetest.Response) {
			if got := corsHeaders(a); a.Status != 200 || !slices.Equal(got, theirs) {
				t.Errorf("%s (HTTP/2 %v): %d %v", path, r.HTTP2, a.Status, a.Header)
			}
		})
	}
}

// A preflight over http is answered and not sent to https: browsers follow no
// redirect of one.
func TestRedirectToHTTPS(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Ingress("web", "a.test", "/", "web", "enable-cors: true", "force-ssl-redirect: true",
		"cors-allow-origin: http://o.example")})
	for _, c := range []struct {
		method, origin string
		status         int
		want           []string
	}{
		{"OPTIONS", "http://o.example", 204, defaults("http://o.example")}, {"GET", "http://o.example", 308, defaults("http://o.example")},
		{"OPTIONS", "http://evil.example", 308, []string{}}, {"OPTIONS", "", 308, []string{}},
	} {
		r := g.Do(headgatetest.Request{Method: c.method, Host: "a.test", Header: http.Header{"Origin": {c.origin}}}).WantStatus(t, c.status)
		if got := corsHeaders(r); !slices.Equal(got, c.want) {
			t.Errorf("%s of %q: %q, want %q", c.method, c.origin, got, c.want)
		}
	}
}

// The lists are the annotations', and a change acts at once on its own route.
func TestChange(t *testing.T) {
	t.Parallel()
	web := func(annotations ...string) string {
		return headgatetest.Ingress("one", "a.test", "/one", "web", annotations...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Ingress("two", "a.test", "/two", "web") + web("enable-cors: true")})
	check := func(path string, want ...string) {
		t.Helper()
		r := g.Do(headgatetest.Request{Host: "a.test", Path: path, Header: http.Header{"Origin": {"http://o.example"}}}).WantStatus(t, 200)
		if got := corsHeaders(r); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	check("/one", defaults("*")...)
	g.Apply(web("enable-cors: true", "cors-allow-origin: http://o.example", "cors-allow-methods: GET, PROPFIND", "cors-allow-headers: X-One, X-Two",
		"cors-max-age: -1", "cors-allow-credentials: false", "cors-expose-headers: X-Out, X-More"))
	check("/one", "http://o.example", "GET, PROPFIND", "X-One, X-Two", "-1", "X-Out, X-More")
	g.Apply(web("cors-allow-origin: http://o.example"))
	check("/one", theirs...)
	check("/two", theirs...)
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}

// Two Origins are none that is allowed, or the first alone: never one of them
// for the other.
func TestTwoOrigins(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) +
		headgatetest.Ingress("web", "a.test", "/", "web", "enable-cors: true", "cors-allow-origin: http://good.example")})
	r := g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"Origin": {"http://evil.example", "http://good.example"}}}).WantStatus(t, 200)
	if got := corsHeaders(r); !slices.Equal(got, theirs) {
		t.Errorf("%q", got)
	}
}

// TestReflected: a preflight request gets what it asks for where the annotation says so, if that is a
// list of names.
func TestReflected(t *testing.T) {
	t.Parallel()
	const on = "enable-cors: true"
	all := []string{on, "cors-allow-headers: *", "cors-allow-methods: *"}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: backend(t) + headgatetest.Ingress("all", "all.test", "/", "web", all...) +
		headgatetest.Ingress("asked", "asked.test", "/", "web", append(all, "cors-reflect-requested: true")...) +
		headgatetest.Ingress("listed", "listed.test", "/", "web", on, "cors-reflect-requested: true", "cors-allow-headers: X-One")})
	for _, c := range []struct{ host, headers, want, vary string }{
		{"all.test", "authorization, x-mine", "*, *", ""},
		{"asked.test", "authorization, x-mine", "PUT, authorization, x-mine", "Access-Control-Request-Method, Access-Control-Request-Headers"},
		{"asked.test", "x-mine;y", "PUT, *", "Access-Control-Request-Method"},
		{"asked.test", strings.Repeat("x", 4001), "PUT, *", "Access-Control-Request-Method"},
		{"listed.test", "x-mine", "GET, PUT, POST, DELETE, PATCH, OPTIONS, X-One", ""},
	} {
		for _, http2 := range []bool{false, true} {
			r := headgatetest.Request{Method: "OPTIONS", Host: c.host, HTTP2: http2, Header: http.Header{
				"Origin": {"http://o.example"}, "Access-Control-Request-Method": {"PUT"}, "Access-Control-Request-Headers": {c.headers},
			}}
			if http2 {
				r.Scheme = "https"
			}
			a := g.Do(r).WantStatus(t, 204)
			got := a.Header.Get("Access-Control-Allow-Methods") + ", " + a.Header.Get("Access-Control-Allow-Headers")
			if got != c.want || a.Header.Get("Vary") != c.vary {
				t.Errorf("%s asked for %.50q (HTTP/2 %v): %q, Vary %q", c.host, c.headers, http2, got, a.Header.Get("Vary"))
			}
		}
	}
}

// TestVary: what a backend says that its answers depend on stays.
func TestVary(t *testing.T) {
	t.Parallel()
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Vary"] = r.Header["X-Vary"]
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("web") + headgatetest.Endpoints("web", address) +
		headgatetest.Ingress("web", "a.test", "/", "web", "enable-cors: true", "cors-allow-origin: http://o.example")})
	for _, c := range []struct {
		theirs []string
		want   string
	}{
		{nil, "Origin"}, {[]string{"Accept-Encoding"}, "Accept-Encoding, Origin"}, {[]string{"accept, origin"}, "accept, origin"}, {[]string{"*"}, "*"},
		{[]string{"X-Origin"}, "X-Origin, Origin"}, {[]string{"A", "Origin"}, "A|Origin"}, {[]string{"A", "B"}, "A, B, Origin"},
	} {
		for _, origin := range []string{"", "http://o.example", "http://evil.example"} {
			r := g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"X-Vary": c.theirs, "Origin": {origin}}}).WantStatus(t, 200)
			if got := strings.Join(r.Header.Values("Vary"), "|"); got != c.want {
				t.Errorf("the backend says %q: %q, want %q", c.theirs, got, c.want)
			}
		}
	}
}
