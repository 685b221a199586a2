package adminsnippet_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

func start(t *testing.T, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("one") +
		headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("plain", "a.test", "/", "one") +
		headgatetest.Ingress("jumps", "a.test", "/jumps", "one", "proxy-body-size: 1k") + headgatetest.Config(keys...)})
}

// TestSnippets: each text is where its key says, on paths with and without settings of their own,
// and what it does ends with it.
func TestSnippets(t *testing.T) {
	t.Parallel()
	g := start(t)
	all := []string{
		"main-snippet: env MINE;", `http-snippet: map $uri $mine { default "{;}$uri"; } # a comment without an end`,
		"server-snippet: more_set_headers \"X-Server: yes\";\nif ($arg_refuse) { return 403; }\nrewrite ^/old(.*) /jumps$1 last;\nlocation = /closed { return 410; }",
		"location-snippet: add_header X-Mine $mine;",
	}
	for range 2 {
		g.ApplyReloading(headgatetest.Config(all...))
		for _, path := range []string{"/", "/jumps", "/jumps/x"} {
			header := g.Get("a.test", path).WantStatus(t, 200).Header
			if header.Get("X-Mine") != "{;}"+path || header.Get("X-Server") != "yes" {
				t.Errorf("%s: %v", path, header)
			}
			g.Get("a.test", path+"?refuse=1").WantStatus(t, 403)
		}
		if r := g.Get("a.test", "/old/x").WantStatus(t, 200); r.Echo.Target != "/jumps/x" {
			t.Errorf("the backend was asked for %s", r.Echo.Target)
		}
		g.Get("a.test", "/closed").WantStatus(t, 410)
		g.Get("b.test", "/").WantStatus(t, 404)
		g.ApplyReloading(headgatetest.Config())
		for _, path := range []string{"/?refuse=1", "/jumps", "/closed"} {
			if header := g.Get("a.test", path).WantStatus(t, 200).Header; header.Get("X-Mine")+header.Get("X-Server") != "" {
				t.Errorf("%s: %v", path, header)
			}
		}
	}
}

// TestBadSnippets: what NGINX does not take leaves the last good text in place, says where it is wrong,
// and holds up nothing else.
func TestBadSnippets(t *testing.T) {
	t.Parallel()
	g := start(t)
	good := []string{"http-snippet: map $uri $mine { default good; }", "location-snippet: add_header X-Mine $mine;", "server-snippet: if ($arg_refuse) { return 403; }"}
	g.ApplyReloading(headgatetest.Config(good...))
	taken, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for i, c := range []struct{ key, value, want string }{
		{"http-snippet", "map $uri $mine { default bad; }\nno_such_directive 1;", `line 2: unknown directive "no_such_directive"`},
		{"http-snippet", "map $uri $mine { default bad; }\n\nkeepalive_timeout 3s;", `line 3: "keepalive_timeout" directive is duplicate`},
		{"http-snippet", "map $uri $mine { default bad; }\ninit_by_lua_block { x = 1 }", `line 2: "init_by_lua_block": is duplicate`},
		{"http-snippet", "map $uri $mine { default bad; }\nserver { listen " + port + "; }", "line 2: 0.0.0.0:" + port + " is in use"},
		{"http-snippet", "map $uri $mine { default bad; }\naccess_log " + g.RunDir.Path() + "/nginx.conf;", "line 2: "},
		{"http-snippet", "map $uri $mine { default bad; }\ninclude /nowhere/at/all.conf;", `line 2: open() `},
		{"http-snippet", "map $uri $other { default bad; }", `unknown "mine" variable`},
		{"http-snippet", "map $uri $mine {", "line 1: a block is not closed"},
		{"server-snippet", "}\nserver {\n", `line 1: unexpected "}"`},
		{"server-snippet", "location / { return 200; }", `duplicate location "/"`},
		{"server-snippet", "load_module /x.so;", `line 1: "load_module" directive is not allowed here`},
		{"location-snippet", "add_header X-Mine \"bad;", "line 1: a quote "},
		{"location-snippet", "auth_request /x;", "directive is duplicate"},
		{"location-snippet", "limit_req zone=none;", `zero size shared memory zone "none"`},
		{"main-snippet", "worker_processes 3;", `line 1: "worker_processes" directive is duplicate`},
		{"main-snippet", "load_module /nowhere.so;", `line 1: dlopen() `},
	} {
		keys := append([]string{}, good...)
		for j := range keys {
			if strings.HasPrefix(keys[j], c.key+": ") {
				keys[j] = c.key + ": " + c.value
			}
		}
		if c.key == "main-snippet" {
			keys = append(keys, c.key+": "+c.value)
		}
		// Another static setting goes live with it.
		age := fmt.Sprint(i + 1)
		g.Apply(headgatetest.Config(append(keys, "hsts-max-age: "+age, "hsts: true")...))
		g.Apply(headgatetest.Ingress("more", "a.test", "/more", "one", fmt.Sprintf("proxy-body-size: %dk", i+2)))
		if log := g.Log.String(); !strings.Contains(log, quoted(c.want)) {
			t.Errorf("%s: %s: no finding with %s", c.key, c.value, c.want)
		}
		for _, path := range []string{"/", "/more"} {
			r := g.Do(headgatetest.Request{Host: "a.test", Path: path, Scheme: "https"}).WantStatus(t, 200)
			if r.Header.Get("X-Mine") != "good" || r.Header.Get("Strict-Transport-Security") != "" && !strings.HasPrefix(r.Header.Get("Strict-Transport-Security"), "max-age="+age+";") {
				t.Errorf("%s: %s: %s: %v", c.key, c.value, path, r.Header)
			}
		}
		g.Get("a.test", "/?refuse=1").WantStatus(t, 403)
	}
	if n := g.Value(g.Metrics.ReloadFailures); n != 0 {
		t.Errorf("%d reloads failed", n)
	}
}

func quoted(text string) string { return strings.Trim(fmt.Sprintf("%q", text), `"`) }

// TestBadFromNothing: a text that is bad where there was none leaves a running Headgate as it is.
func TestBadFromNothing(t *testing.T) {
	t.Parallel()
	g := start(t)
	for _, text := range []string{"server-snippet: deny nonsense;", "http-snippet: }"} {
		g.Apply(headgatetest.Config(text))
		g.Get("a.test", "/").WantStatus(t, 200)
		g.Apply(headgatetest.Config(text, "hsts: false"))
		g.Get("a.test", "/").WantStatus(t, 200)
	}
	// A bad one at the start is not a last good state.
	g = start(t, "server-snippet: deny nonsense;")
	g.Get("a.test", "/").WantStatus(t, 503)
	g.Apply(headgatetest.Config("server-snippet: deny nonsense;", "hsts: false"))
	g.Get("a.test", "/").WantStatus(t, 503)
}

// TestController: lines that refuse requests do not keep the controller from the data plane.
func TestController(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := start(t, "http-snippet: allow 127.0.0.0/8; deny all; limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m; limit_req zone=one burst=1000 nodelay;\n"+
		"limit_conn_zone $binary_remote_addr zone=two:1m; limit_conn two 20;\nauth_basic x; auth_basic_user_file /dev/null; access_by_lua_block { ngx.exit(403) }")
	for i := range 5 {
		g.Apply(headgatetest.Ingress("new", fmt.Sprintf("new%d.test", i), "/", "one"))
	}
	g.Get("a.test", "/").WantStatus(t, 401)
	g.Apply(headgatetest.Config())
	g.Get("a.test", "/").WantStatus(t, 200)
}

// TestBadAtStart: without a good text before, no request is served if the text may control access.
func TestBadAtStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key    string
		status int
	}{
		{"http-snippet: deny 10.0.0.0/8; nonsense;", 503},
		{"server-snippet: if ($arg_x) { return 403; } nonsense;", 503},
		{"location-snippet: }", 503},
		{"http-snippet: deny 10.0.0.0/8;", 200},
		{"location-snippet: gzip maybe;", 200},
		{"main-snippet: nonsense;", 200},
	} {
		g := start(t, c.key)
		g.Get("a.test", "/").WantStatus(t, c.status)
		g.Get("a.test", "/jumps").WantStatus(t, c.status)
		g.Apply(headgatetest.Config())
		g.Get("a.test", "/").WantStatus(t, 200)
	}
}

// TestOwnServer: a server of the administrator's has its port as long as the text is there.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	port := porttest.Free(t)
	g := start(t)
	text := fmt.Sprintf("http-snippet: server { listen 127.0.0.1:%d; return 418; }", port)
	own := func() string {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return "closed"
		}
		defer c.Close()
		fmt.Fprintf(c, "GET / HTTP/1.0\r\n\r\n")
		status := make([]byte, len("HTTP/1.1 418"))
		_, _ = c.Read(status)
		return string(status)
	}
	g.ApplyReloading(headgatetest.Config(text))
	if got := own(); got != "HTTP/1.1 418" {
		t.Error(got)
	}
	// NGINX itself has the port now.
	g.ApplyReloading(headgatetest.Config(text+" map $uri $x { }", "hsts: false"))
	if got := own(); got != "HTTP/1.1 418" {
		t.Error(got)
	}
	g.ApplyReloading(headgatetest.Config())
	if got := own(); got != "closed" {
		t.Error(got)
	}
}

// TestModule: a module is loaded as long as the text is there, with its directives.
func TestModule(t *testing.T) {
	t.Parallel()
	port := porttest.Free(t)
	g := start(t)
	const load = "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n"
	stream := fmt.Sprintf("stream { server { listen 127.0.0.1:%d; return loaded; } }", port)
	said := func() string {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return "closed"
		}
		defer c.Close()
		text, _ := io.ReadAll(c)
		return string(text)
	}
	g.Apply(headgatetest.Config("main-snippet: " + stream))
	if !strings.Contains(g.Log.String(), quoted(`line 1: unknown directive "stream"`)) || said() != "closed" {
		t.Error("it is loaded already")
	}
	for _, end := range []string{"", " # another text"} {
		g.ApplyReloading(headgatetest.Config("main-snippet: " + load + stream + end))
		if got := said(); got != "loaded" {
			t.Error(got)
		}
		g.Get("a.test", "/").WantStatus(t, 200)
	}
	g.ApplyReloading(headgatetest.Config())
	if got := said(); got != "closed" {
		t.Error(got)
	}
}

// TestHeaders: a header that lines in locations set for backends comes beside those that Headgate sends.
func TestHeaders(t *testing.T) {
	t.Parallel()
	g := start(t, "location-snippet: proxy_set_header X-Mine $uri;")
	for _, path := range []string{"/", "/jumps"} {
		e := g.Get("a.test", path).WantStatus(t, 200).Echo
		if e.Host != "a.test" || e.Header.Get("X-Mine") != path || e.Header.Get("X-Forwarded-For") != "127.0.0.1" || e.Header.Get("Http2-Settings") != "" {
			t.Errorf("%s: %+v", path, e)
		}
	}
}

// TestShapes: what people have in these keys goes together and does what it does in NGINX.
func TestShapes(t *testing.T) {
	t.Parallel()
	redirects, counts := porttest.Free(t), porttest.Free(t)
	g := start(t)
	g.ApplyReloading(headgatetest.Config(
		"main-snippet: env MINE=1;\nworker_rlimit_core 1m;",
		fmt.Sprintf(`http-snippet: map $http_user_agent $is_robot { default ""; ~*crawler 1; }
geo $inside { default 0; 127.0.0.0/8 1; }
map $http_origin $allowed { default ""; ~^https://.*\.example$ $http_origin; }
limit_req_zone $http_x_client zone=slow:1m rate=1r/m;
limit_conn_zone $binary_remote_addr zone=few:1m;
log_format short '$status $uri';
proxy_cache_path %s levels=1:2 keys_zone=answers:1m max_size=10m inactive=1m use_temp_path=off;
split_clients $request_id $half { 50%% one; * two; }
server { listen 127.0.0.1:%d; return 308 https://$host$request_uri; }
server { listen 127.0.0.1:%d; location = /counts { stub_status; } }`, t.TempDir(), redirects, counts),
		`server-snippet: if ($is_robot) { return 403; }
if ($http_x_forwarded_proto = http) { return 308 https://$host$request_uri; }
if ($request_method = TRACE) { return 405; }
set $mine "$inside";
more_set_headers "X-Frame-Options: SAMEORIGIN" "X-Inside: $mine";
location = /robots.txt { default_type text/plain; return 200 "Disallow: /\n"; }
location ~ ^/(metrics|actuator) { deny all; }
location @sorry { return 302 https://sorry.example/; }`,
		`location-snippet: limit_req zone=slow burst=1 nodelay;
limit_conn few 50;
proxy_set_header X-Inside $inside;
more_set_headers "Access-Control-Allow-Origin: $allowed";
proxy_cache_bypass $http_pragma;`))
	for _, path := range []string{"/", "/jumps"} {
		r := g.Do(headgatetest.Request{Host: "a.test", Path: path, Header: http.Header{"Origin": {"https://a.example"}}}).WantStatus(t, 200)
		want := []string{"SAMEORIGIN", "1", "https://a.example", "1"}
		got := []string{r.Header.Get("X-Frame-Options"), r.Header.Get("X-Inside"), r.Header.Get("Access-Control-Allow-Origin"), r.Echo.Header.Get("X-Inside")}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, c := range []struct {
		path, header, value string
		status              int
	}{
		{"/", "User-Agent", "a Crawler", 403},
		{"/", "X-Forwarded-Proto", "http", 308},
		{"/robots.txt", "X-Client", "", 200},
		{"/metrics", "X-Client", "", 403},
		{"/", "X-Client", "one", 200},
		{"/jumps", "X-Client", "one", 200},
		{"/", "X-Client", "one", 503},
	} {
		g.Do(headgatetest.Request{Host: "a.test", Path: c.path, Header: http.Header{c.header: {c.value}}}).WantStatus(t, c.status)
	}
	direct := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for address, status := range map[string]int{fmt.Sprintf("http://127.0.0.1:%d/x", redirects): 308, fmt.Sprintf("http://127.0.0.1:%d/counts", counts): 200} {
		r, err := direct.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != status {
			t.Errorf("%s: %d, want %d", address, r.StatusCode, status)
		}
	}
}
