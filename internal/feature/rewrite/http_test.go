package rewrite_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func TestWhatTheBackendIsAsked(t *testing.T) {
	t.Parallel()
	manifests := headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web"))
	hosts := map[string]string{}
	host := func(path string, annotations ...string) string {
		name := fmt.Sprintf("h%d.test", len(hosts))
		hosts[name] = path
		manifests += headgatetest.Ingress(strings.TrimSuffix(name, ".test"), name, path, "web", annotations...)
		return name
	}
	captures := host("/foo(/|$)(.*)", "rewrite-target: /$2", "x-forwarded-prefix: /foo")
	plain := host("/foo", "rewrite-target: /new")
	loose := host("/b(.*)", "rewrite-target: /new$1")
	missing := host("/foo/(.*)", "rewrite-target: x$3/y")
	named := host("/foo/(?<rest>.*)", "rewrite-target: /n/$rest/$host")
	same := host("/", "rewrite-target: /")
	below := host("/foo", "rewrite-target: /foo")
	manifests += headgatetest.Ingress("other", below, "/bar", "web", "rewrite-target: /foo")
	url := host("/foo/(.*)", "rewrite-target: https://example.com/$1")
	bad := host("/foo", "rewrite-target: /new?a=b")
	prefixed := host("/(app)/(.*)", "rewrite-target: /$2", "x-forwarded-prefix: /$1")
	unsent := host("/foo", "x-forwarded-prefix: /foo")
	slow := host("/((?:[^x]|[^y]|[^z])+)[XY]$", "rewrite-target: /$1")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})

	for _, c := range []struct{ host, path, want string }{
		{captures, "/foo", "/"}, {captures, "/foo/", "/"}, {captures, "/foo/bar", "/bar"}, {captures, "/FOO/Bar", "/Bar"},
		{captures, "/foo/bar?x=1&y=%20", "/bar?x=1&y=%20"}, {captures, "/foo/x?", "/x"}, {captures, "/foo/?q", "/?q"},
		{captures, "/foo/x?a=/d//e&f=%2F", "/x?a=/d//e&f=%2F"}, {captures, "/foobar", "404"},
		{captures, "/foo/a%20b", "/a%20b"}, {captures, "/foo/a%0d%0ab", "/a%0D"}, {captures, "/foo/%e4%b8%ad", "/%E4%B8%AD"},
		{captures, "/foo/%3fx", "/%3Fx"}, {captures, "/foo/%23x", "/%23x"}, {captures, "/foo/a%2fb", "/a/b"}, {captures, "/foo/%25", "/%25"},
		{plain, "/foo", "/new"}, {plain, "/foo/", "/new"}, {plain, "/foo/bar?q=1", "/new?q=1"}, {plain, "/foobar", "/new"},
		{loose, "/b/c", "/new/c"}, {loose, "/bb/b", "/newb/b"}, {loose, "/a/b", "404"},
		{missing, "/foo/q", "/x/y"}, {named, "/foo/q", "/n/q/" + named},
		{same, "/x/y?z=1", "/x/y?z=1"}, {same, "/a%2Fb//c", "/a%2Fb//c"},
		{below, "/foo", "/foo"}, {below, "/foo/", "/foo"}, {below, "/foo/x?y=1", "/foo?y=1"}, {below, "/FOO/x", "/foo"},
		{below, "/foobar", "/foobar"}, {below, "/bar/x", "/foo"}, {below, "/b", "404"},
		{bad, "/foo/x", "/foo/x"}, {bad, "/foobar", "404"},
		{slow, "/" + strings.Repeat("ab", 100), "500"},
	} {
		for _, http2 := range []bool{false, true} {
			r := headgatetest.Request{Host: c.host, Path: c.path, HTTP2: http2}
			if http2 {
				r.Scheme = "https"
			}
			response := g.Do(r)
			got := fmt.Sprint(response.Status)
			if response.Echo != nil {
				got = response.Echo.Target
			}
			if got != c.want {
				t.Errorf("%s%s (HTTP/2 %v): %s, want %s", c.host, c.path, http2, got, c.want)
			}
		}
	}

	r := g.Get(url, "/foo/x%20y?y=1").WantStatus(t, 302)
	if got := r.Header.Get("Location"); got != "https://example.com/x%20y?y=1" {
		t.Errorf("Location %q", got)
	}

	posted := g.Do(headgatetest.Request{Method: "POST", Host: captures, Path: "/foo/x", Body: strings.NewReader("12345")}).WantStatus(t, 200)
	if e := posted.Echo; e.Method != "POST" || e.Header.Get("X-Forwarded-Prefix") != "/foo" {
		t.Errorf("the backend got %+v", e)
	}
	if got := g.Get(prefixed, "/app/x").WantStatus(t, 200).Echo; got.Header.Get("X-Forwarded-Prefix") != "/app" || got.Target != "/x" {
		t.Errorf("with a group in x-forwarded-prefix the backend got %+v", got)
	}
	sent := g.Do(headgatetest.Request{Host: unsent, Path: "/foo/x", Header: http.Header{"X-Forwarded-Prefix": {"/mine"}}}).WantStatus(t, 200)
	if got := sent.Echo.Header.Get("X-Forwarded-Prefix"); got != "/mine" {
		t.Errorf("X-Forwarded-Prefix without a rewrite: %q", got)
	}
	g.Apply(headgatetest.Ingress("later", "later.test", "/", "web", "rewrite-target: /later", "proxy-body-size: 0"))
	if n := g.Value(g.Metrics.Reloads); n != 1 {
		t.Errorf("%v reloads, want the one for the body's limit", n)
	}
	if got := g.Get("later.test", "/x").Echo.Target; got != "/later" {
		t.Errorf("after a jump to another profile's location the backend was asked for %s", got)
	}
}
