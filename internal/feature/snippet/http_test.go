package snippet_test

import (
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A step is a request and what is answered: location and body where they are not empty, and
// target if the backend answers.
type step struct {
	host, path             string
	status                 int
	location, body, target string
}

func check(t *testing.T, g *headgatetest.Instance, steps []step) {
	t.Helper()
	for _, s := range steps {
		for _, scheme := range []string{"http", "https"} {
			r := g.Do(headgatetest.Request{Scheme: scheme, HTTP2: scheme == "https", Host: s.host, Path: s.path})
			location := s.location
			if scheme == "https" && len(location) > 5 && location[:5] == "http:" {
				location = "https" + location[4:]
			}
			target := ""
			if r.Echo != nil {
				target = r.Echo.Target
			}
			if got := r.Header.Get("Location"); r.Status != s.status || got != location || target != s.target || s.body != "" && r.Body != s.body {
				t.Errorf("%s://%s%s: %d %q, body %q, the backend got %q; want %+v", scheme, s.host, s.path, r.Status, got, r.Body, target, s)
			}
		}
	}
}

func start(t *testing.T, manifests string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web")) +
		headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical") + manifests})
}

// of is an Ingress with one annotation for all paths of a host of its name.
func of(name, annotation, text string, more ...string) string {
	return headgatetest.Ingress(name, name+".test", "/", "web", append(more, annotation+": "+text)...)
}

func TestSteps(t *testing.T) {
	t.Parallel()
	const c = "configuration-snippet"
	g := start(t,
		of("return", c, `if ($arg_stop) { return 418 "stop $arg_stop"; }`)+
			of("plain", c, `return 403;`)+
			of("empty", c, `return 204;`)+
			of("nothing", c, `return 200;`)+
			of("path", c, `return 301 /there?a=$arg_a;`)+
			of("whole", c, `return 308 https://example.com$request_uri;`)+
			of("bare", c, `return https://example.com/;`)+
			of("set", c, `set $a x; set $a "${a}y"; if ($a = xy) { set $a "${a}z"; } return 200 "$a-$b";set $b "";`)+
			of("groups", c, `if ($request_uri ~* "^/(a+)/(?<Rest>.*)") { return 200 "$1,$2,$rest"; } return 200 "none";`)+
			of("break", c, `rewrite ^/a/(.*)$ /b/$1?x=1 break; rewrite ^/b /no;`)+
			of("arguments", c, `rewrite ^/a/(.*)$ /b/$1? break;`)+
			of("redirect", c, `rewrite ^/a/(.*)$ /b/$1 redirect; rewrite ^/c https://example.com/c? permanent;`)+
			of("loop", c, `rewrite ^/a /a last;`)+
			of("families", c, `if ($arg_own = x) { return 200 "$http_x_own,$arg_own,$http,$arg,$cookie,$group,$sent_http,$upstream_http"; } set $http_x_own a; set $arg_own b; set $http c; set $arg d; set $cookie e; set $group f; set $sent_http g; set $upstream_http h; return 200 "$http_x_own,$arg_own,$http,$arg,$cookie,$group,$sent_http,$upstream_http";`)+
			of("types", c, `return 200 "{}";`)+
			of("target", c, `rewrite ^/a/(.*)$ /b/$1; rewrite ^/c /d;`, "rewrite-target: /r", "permanent-redirect-code: 308"))
	check(t, g, []step{
		{host: "return.test", path: "/?stop=1", status: 418, body: "stop 1"},
		{host: "return.test", path: "/?stop=0", status: 200, target: "/?stop=0"},
		{host: "plain.test", path: "/", status: 403},
		{host: "empty.test", path: "/", status: 204},
		{host: "nothing.test", path: "/", status: 200},
		{host: "path.test", path: "/?a=1", status: 301, location: "http://path.test/there?a=1"},
		{host: "whole.test", path: "/x?y=1", status: 308, location: "https://example.com/x?y=1"},
		{host: "bare.test", path: "/x?y=1", status: 302, location: "https://example.com/"},
		{host: "set.test", path: "/", status: 200, body: "xyz-"},
		{host: "groups.test", path: "/AA/b/c", status: 200, body: "AA,b/c,b/c"},
		{host: "groups.test", path: "/b", status: 200, body: "none"},
		{host: "break.test", path: "/a/c%20d?y=2", status: 200, target: "/b/c%20d?x=1&y=2"},
		{host: "arguments.test", path: "/a/c?y=2", status: 200, target: "/b/c"},
		{host: "redirect.test", path: "/a/c%20d?y=2", status: 302, location: "http://redirect.test/b/c%20d?y=2"},
		{host: "redirect.test", path: "/c?y=2", status: 301, location: "https://example.com/c"},
		{host: "loop.test", path: "/a", status: 500},
		{host: "families.test", path: "/?own=x", status: 200, body: ",x,,,,,,"},
		{host: "families.test", path: "/", status: 200, body: "a,b,c,d,e,f,g,h"},
		{host: "types.test", path: "/x.json", status: 200, body: "{}"},
		{host: "target.test", path: "/x", status: 200, target: "/r"},
		{host: "target.test", path: "/a/x", status: 200, target: "/r"},
	})
	if got := g.Get("types.test", "/x.json").Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the type of /x.json: %q", got)
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	const s = "server-snippet"
	g := start(t,
		of("closed", s, `location /metrics { return 403; } location = /x { return 200 exact; } location ~ ^/r(.*) { return 200 $1; }`)+
			headgatetest.Ingress("closed2", "closed.test", "/metrics/open", "web")+
			of("if", s, `if ($http_user_agent ~* curl) { return 444; } if ($arg_go) { return 302 /gone; }`)+
			of("moved", s, `rewrite ^/old/(.*)$ /new/$1 last;`)+
			of("again", s, `location /a/ { rewrite ^/a/(.*)$ /b/$1 last; } location /none { add_header X a; }`))
	check(t, g, []step{
		{host: "closed.test", path: "/metrics", status: 403},
		{host: "closed.test", path: "/metricsx", status: 403},
		{host: "closed.test", path: "/metrics/open/x", status: 200, target: "/metrics/open/x"},
		{host: "closed.test", path: "/a", status: 200, target: "/a"},
		{host: "closed.test", path: "/x", status: 200, body: "exact"},
		{host: "closed.test", path: "/rest", status: 200, body: "est"},
		{host: "if.test", path: "/?go=1", status: 302, location: "http://if.test/gone"},
		{host: "if.test", path: "/", status: 200, target: "/"},
		{host: "moved.test", path: "/old/a?b", status: 200, target: "/new/a?b"},
		{host: "again.test", path: "/a/c", status: 200, target: "/b/c"},
		{host: "again.test", path: "/none", status: 404},
	})
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

// TestMoves: a path that a snippet has changed is guarded as its route is, however it is written.
func TestMoves(t *testing.T) {
	t.Parallel()
	const last = "configuration-snippet: rewrite ^/open/(.*)$ /$1 last; rewrite ^/any$ $arg_to? last; rewrite ^/stay$ $arg_to? break; rewrite ^/stay/(.*)b(.*)$ /x/$1$2 break;"
	g := start(t,
		headgatetest.Ingress("from", "moves.test", "/", "web", last)+
			headgatetest.Ingress("closed", "moves.test", "/secret", "web", "whitelist-source-range: 10.0.0.0/8")+
			headgatetest.Ingress("server", "server.test", "/", "web", `server-snippet: rewrite ^/any$ $arg_to? last; rewrite ^/any/(.*)b(.*)$ /x/$1$2; rewrite ^/any/(.*)$ /$1;`)+
			headgatetest.Ingress("server-closed", "server.test", "/secret", "web", "whitelist-source-range: 10.0.0.0/8")+
			headgatetest.Ingress("here", "moves.test", "/there", "web", "rewrite-target: /here")+
			headgatetest.Ingress("regex", "regex.test", "/a/(.*)", "web", "use-regex: true",
				`configuration-snippet: rewrite ^/a/x(.*)$ /a/y$1 break; if ($arg_groups) { return 200 "$1"; }`,
				"server-snippet: location = /a/exact { return 403; } location ^~ /a/none { return 404; } location ~ ^/a/r { return 410; } location /a/prefix { return 403; }"))
	check(t, g, []step{
		{host: "moves.test", path: "/open/x", status: 200, target: "/x"},
		{host: "moves.test", path: "/secret/x", status: 403},
		{host: "moves.test", path: "/open/secret/x", status: 403},
		{host: "moves.test", path: "/open/open/secret/x", status: 403},
		{host: "moves.test", path: "/open/%73ecret/x", status: 403},
		{host: "moves.test", path: "/any?to=/secret", status: 403},
		{host: "moves.test", path: "/any?to=/x/../secret", status: 400},
		{host: "moves.test", path: "/any?to=/x%2f..%2fsecret", status: 400},
		{host: "moves.test", path: "/any?to=/x;/../secret", status: 400},
		{host: "moves.test", path: "/stay?to=/x", status: 200, target: "/x"},
		{host: "moves.test", path: "/stay?to=/x/../secret", status: 400},
		{host: "moves.test", path: "/stay?to=/x%5c..%5csecret", status: 400},
		{host: "moves.test", path: "/stay/.b./secret", status: 400},
		{host: "server.test", path: "/any?to=/x", status: 200, target: "/x"},
		{host: "server.test", path: "/any?to=/x/../secret", status: 400},
		{host: "server.test", path: "/any/.b./secret", status: 400},
		{host: "server.test", path: "/any/secret", status: 403},
		{host: "moves.test", path: "/open/there", status: 200, target: "/here"},
		{host: "regex.test", path: "/a/b?groups=1", status: 200, body: "b"},
		{host: "regex.test", path: "/a/xb", status: 200, target: "/a/yb"},
		{host: "regex.test", path: "/a/exact", status: 403},
		{host: "regex.test", path: "/a/nonesuch", status: 404},
		{host: "regex.test", path: "/a/rest", status: 410},
		{host: "regex.test", path: "/a/prefix", status: 200, target: "/a/prefix"},
	})
}
