package dataplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A pathCase is the rules of one host and what paths lead to: "PATH SERVICE",
// "PATH STATUS" or "PATH STATUS LOCATION". The answers of ingress-nginx were
// recorded and are these.
type pathCase struct {
	name  string
	rules []string // without the host; behind an empty one annotations
	want  []string
}

var pathCases = []pathCase{
	{"exact", []string{"Exact /foo a", "Exact /bar/ b"}, []string{
		"/foo a", "/foo?x=/foo a", "/foo/ 404", "/foo/x 404", "/foobar 404", "/Foo 404", "/bar/ b", "/bar 301 http://HOST/bar/", "/bar/x 404", "/ 404", "/%66oo a",
	}},
	{"exact-and-prefix", []string{"Exact /foo a", "Prefix /foo b"}, []string{"/foo a", "/foo?x a", "/foo/ b", "/foo/x b", "/foox 404"}},
	{"exact-root-and-prefix", []string{"Exact / a", "Prefix / b"}, []string{"/ a", "/?q a", "/x b"}},
	{"exact-below-prefix", []string{"Prefix /foo a", "Exact /foo/bar b"}, []string{"/foo/bar b", "/foo/bar/ a", "/foo/barx a", "/foo a"}},
	{"prefix", []string{"Prefix /foo a"}, []string{"/foo a", "/foo/ a", "/foo/bar a", "/foobar 404", "/fo 404", "/ 404", "/FOO 404"}},
	{"prefix-root", []string{"Prefix / a"}, []string{"/ a", "/foo/bar?x=1&y=2 a", "/a%20b a", "/? a", "/foo//bar a"}},
	{"longest-prefix", []string{"Prefix / a", "Prefix /api b", "Prefix /api/v1 c"}, []string{
		"/ a", "/api b", "/api/v2 b", "/api/v1 c", "/api/v1/x c", "/api/v10 b", "/apis a",
	}},
	{"prefix-slash", []string{"Prefix /foo/ a"}, []string{
		"/foo/ a", "/foo/bar a", "/foobar 404", "/foo 301 http://HOST/foo/", "/foo?x=1 301 http://HOST/foo/?x=1",
		"/foo?a=b 301 http://HOST/foo/?a=b", "/%66oo 301 http://HOST/foo/",
	}},
	{"implementation-specific", []string{"ImplementationSpecific /foo a"}, []string{"/foo a", "/foo/x a", "/foox 404"}},
	{"no-path", []string{"ImplementationSpecific - a"}, []string{"/ a", "/x/y a"}},
	{"case-sensitive", []string{"Prefix /Foo a", "Prefix /foo b"}, []string{"/Foo/x a", "/foo/x b", "/FOO/x 404"}},
	{"dot-segments", []string{"Prefix /foo a", "Prefix /bar b", "Prefix / c"}, []string{
		"/foo/../bar b", "/foo/./x a", "/./foo a", "/foo/.. c", "/bar/%2e%2e/foo a", "/foo/..%2fbar b", "/foo/... a",
		"/.. 400", "/../x 400", "/foo/../../x 400", "/%2e%2e/x 400",
	}},
	{"double-slash", []string{"Prefix /foo/bar a", "Prefix / b"}, []string{"/foo//bar a", "//foo/bar a", "/foo/bar// a", "/// b"}},
	{"encoded-letters", []string{"Prefix /foo a"}, []string{"/%66oo/bar a", "/fo%6F a", "/%46oo 404", "/%zz 400", "/%00 400"}},
	{"encoded-slash", []string{"Prefix /foo/bar a", "Prefix /foo b"}, []string{
		"/foo%2Fbar a", "/foo/bar%2Fbaz a", "/foo%2fother b", "/%2Ffoo b",
	}},
	{"encoded-space", []string{"Prefix /a␣b a", "Prefix / b"}, []string{"/a%20b a", "/a+b b", "/a%20b/c a"}},
	{"fragment", []string{"Exact /foo a", "Prefix / b"}, []string{"/foo#frag a", "/foo%23frag b", "/x#/foo b"}},
	{"semicolon", []string{"Prefix /foo a", "Prefix / b"}, []string{"/foo;v=1 b", "/foo;v=1/x b", "/foo/x;y=1 a"}},
	{"tilde-and-star", []string{"Prefix /~user a", "Prefix /x*y b", "Prefix /@home c", "Prefix / d"}, []string{
		"/~user/x a", "/x*y b", "/xzy d", "/@home c", "/%7Euser a",
	}},
	// The names of NGINX's internal locations and of the API are paths like
	// any other.
	{"internal-names", []string{"Prefix / a"}, []string{"/_auth a", "/_mir a", "/@p_000000000000 a", "/v1/apply a", "/v1/state a", "/healthz a"}},
	{"long", []string{"Prefix /long a"}, []string{"/long/" + strings.Repeat("x", 2000) + " a", "/long/" + strings.Repeat("x/", 3000) + " a"}},
}

func TestPaths(t *testing.T) { checkPaths(t, pathCases) }

// checkPaths serves each case's rules under a host of its own.
func checkPaths(t *testing.T, cases []pathCase) {
	t.Helper()
	t.Parallel()
	var manifests strings.Builder
	for _, service := range []string{"a", "b", "c", "d"} {
		manifests.WriteString(served(service, startWire(t, "X-Wire: "+service+"\r\n").address))
	}
	for _, c := range cases {
		var rules []string
		for i, r := range c.rules {
			if r == "" { // annotations follow
				rules = append(rules, c.rules[i:]...)
				break
			}
			rules = append(rules, c.name+".test "+r)
		}
		manifests.WriteString(ruled(c.name, rules...))
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests.String()})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, want := range c.want {
				checkPath(t, g, c.name+".test", want)
			}
		})
	}
}

func checkPath(t *testing.T, g *headgatetest.Instance, host, want string) {
	t.Helper()
	path, want, _ := strings.Cut(want, " ")
	r := askRaw(t, g, get(host, path))
	got := r.Header.Get("X-Wire")
	if got == "" {
		got = strings.TrimSpace(fmt.Sprint(r.Status, " ", r.Header.Get("Location")))
	} else if sent := sentTarget(r.Body); sent != path {
		t.Errorf("%.80s: the backend was asked for %q", path, sent)
	}
	if want = strings.ReplaceAll(want, "HOST", host); got != want {
		t.Errorf("%.80s: got %s, want %s", path, got, want)
	}
}

func hostManifests(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, service := range []string{"a", "b", "c", "d"} {
		b.WriteString(served(service, startWire(t, "X-Wire: "+service+"\r\n").address))
	}
	b.WriteString(ruled("exact", "exact.test Prefix / a"))
	b.WriteString(ruled("wild", "*.w.test Prefix / a", "*.w.test Prefix /w b"))
	b.WriteString(ruled("below", "x.w.test Prefix /e c"))
	b.WriteString(ruled("slash", "slash.test Prefix /foo/ a"))
	b.WriteString("---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: fallback}\n" +
		"spec:\n  defaultBackend: {service: {name: d, port: {number: 80}}}\n" +
		"  rules:\n  - host: fallback.test\n    http: {paths: [{path: /foo, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}\n" +
		"  - host: nopaths.test\n")
	return b.String()
}

func TestHosts(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: hostManifests(t)})
	for _, c := range []struct{ host, want string }{
		{"exact.test", "/ a"},
		{"EXACT.Test", "/ a"},
		{"exact.test.", "/ a"},
		{"exact.test:8080", "/ a"},
		{"exact.test:443", "/ a"},
		{"Exact.test.:80", "/ a"},
		{"x.exact.test", "/ 404"},
		{"unknown.test", "/ 404"},
		{"127.0.0.1", "/x 404"},
		{"[::1]:8080", "/x 404"},
		{"_", "/ 404"},
		// One label of letters, digits, dashes and underscores.
		{"a-b.w.test", "/ a"},
		{"a_b.w.test", "/ a"},
		{"1.w.test", "/ a"},
		{"-a.w.test", "/ a"},
		{"A.W.test", "/w b"},
		{"a.w.test:81", "/w/x b"},
		{"a~b.w.test", "/ 404"},
		{"a$b.w.test", "/ 404"},
		{"a.b.w.test", "/ 404"},
		{"w.test", "/ 404"},
		{".w.test", "/ 404"},
		{"xw.test", "/ 404"},
		// A client may not name the wildcard itself.
		{"*.w.test", "/ 404"},
		// The exact host has the name for itself, all paths of it.
		{"x.w.test", "/e c"},
		{"x.w.test", "/w 404"},
		{"y.w.test", "/e a"},
		{"fallback.test", "/foo a"},
		{"fallback.test", "/other d"},
		{"nopaths.test", "/x d"},
	} {
		t.Run(c.host+c.want, func(t *testing.T) {
			t.Parallel()
			checkPath(t, g, c.host, c.want)
		})
	}
	t.Run("slash redirects keep the scheme and drop the port", func(t *testing.T) {
		t.Parallel()
		checkPath(t, g, "slash.test", "/foo 301 http://slash.test/foo/")
		if r := askRaw(t, g, get("slash.test:8080", "/foo?a")); r.Header.Get("Location") != "http://slash.test/foo/?a" {
			t.Errorf("Location %q", r.Header.Get("Location"))
		}
		r := g.Do(headgatetest.Request{Scheme: "https", Host: "slash.test", Path: "/foo"}).WantStatus(t, 301)
		if got := r.Header.Get("Location"); got != "https://slash.test/foo/" {
			t.Errorf("Location %q", got)
		}
		r = g.Do(headgatetest.Request{Method: "POST", Host: "slash.test", Path: "/foo", Body: strings.NewReader("x")})
		r.WantStatus(t, 301)
	})
	t.Run("requests without a name", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string]int{
			"GET / HTTP/1.0\r\n\r\n":                               404,
			"GET / HTTP/1.0\r\nHost: exact.test\r\n\r\n":           200,
			"GET / HTTP/1.1\r\nConnection: close\r\n\r\n":          400,
			"GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n": 400,
			get("exact.test\r\nHost: x.w.test", "/"):               400,
			get("a/b", "/"):                                        400,
			get("exact..test", "/"):                                400,
		} {
			if r := askRaw(t, g, text); r.Status != want {
				t.Errorf("%q: %d, want %d", text, r.Status, want)
			}
		}
	})
}

// Rules without a host answer for all names that no other rule has.
func TestDefaultHost(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", startWire(t, "X-Wire: a\r\n").address) +
		served("b", startWire(t, "X-Wire: b\r\n").address) +
		ruled("named", "b.test Prefix /b b") + ruled("rest", "- Prefix /foo b") +
		"---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: all}\n" +
		"spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}\n"})
	for _, c := range []struct{ host, want string }{
		{"any.test", "/ a"}, {"any.test", "/foo b"}, {"any.test", "/foobar a"}, {"10.1.2.3", "/x a"}, {"*.test", "/ a"},
		{"b.test", "/b b"}, {"b.test", "/x 404"},
	} {
		checkPath(t, g, c.host, c.want)
	}
	if r := askRaw(t, g, "GET /x HTTP/1.0\r\n\r\n"); r.Header.Get("X-Wire") != "a" {
		t.Errorf("HTTP/1.0 without Host: %d from %q", r.Status, r.Header.Get("X-Wire"))
	}
	if r := g.Do(headgatetest.Request{Scheme: "https", Host: "tls.test", HTTP2: true}); r.Header.Get("X-Wire") != "a" {
		t.Errorf("https: %d from %q", r.Status, r.Header.Get("X-Wire"))
	}
	g.Delete("---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: all}\n")
	checkPath(t, g, "any.test", "/ 404")
	checkPath(t, g, "any.test", "/foo b")
}

// rawTargets reach the backend byte for byte.
var rawTargets = []string{
	"/", "/?", "/a?", "/a%2Fb", "/a%2fb%5Cc", "/a//b", "//a", "//a//", "/a/./b/../c", "/a/%2e%2e/b", "/a/..%2fb", "/%41%7e", "/a;b=1;c",
	"/x?a=b&c=%00%0d%0a", "/x?/..//?#", "/caf\xc3\xa9", "/\xff\xfe?\xff", "/\"<>{}|^`\\", "/$uri$1?$args", "/a+b%20c", "/x?http://b/c", "/%25%32%46",
}

func TestTargetsReachTheBackendUnchanged(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("w", startWire(t, "").address) +
		headgatetest.Ingress("plain", "plain.test", "/", "w") +
		headgatetest.Ingress("named", "named.test", "/", "w", "proxy-body-size: 3m")})
	for _, host := range []string{"plain.test", "named.test"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			client := g.NewClient(true)
			t.Cleanup(client.CloseIdleConnections)
			for _, target := range rawTargets {
				if r := askRaw(t, g, get(host, target)); r.Status != 200 || sentTarget(r.Body) != target {
					t.Errorf("%q: %d, the backend was asked for %q", target, r.Status, sentTarget(r.Body))
				}
				if strings.HasPrefix(target, "//") {
					continue // Go's client takes it for a host.
				}
				if status, head := askH2(t, client, host, target); status != 200 || sentTarget(head) != target {
					t.Errorf("HTTP/2 %q: %d, the backend was asked for %q", target, status, sentTarget(head))
				}
			}
			checkAbsoluteForms(t, g, host)
		})
	}
}

// Beside a guarded route a backend is asked for the path that NGINX routed by,
// where the client's leads elsewhere for who reads it as it stands.
func TestTargetsBesideAGuard(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("w", startWire(t, "").address) +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}secret'}\n" +
		headgatetest.Ingress("free", "a.test", "/", "w") + headgatetest.Ingress("more", "a.test", "/more", "w", "proxy-body-size: 3m") +
		headgatetest.Ingress("admin", "a.test", "/admin", "w", "auth-type: basic", "auth-secret: users")})
	client := g.NewClient(true)
	t.Cleanup(client.CloseIdleConnections)
	for target, want := range map[string]string{
		"/free": "/free", "/free/a%2Fb?x=/../%2e": "/free/a%2Fb?x=/../%2e", "/free/a..b%2Fc": "/free/a..b%2Fc", "/v1.2/x": "/v1.2/x",
		"/admin/../free?x=%20": "/free?x=%20", "/admin/..%2ffree": "/free", "/admin/%2e%2E/more/x": "/more/x", "/admin/x/../..%2Fa%20b": "/a%20b",
		"/free/../admin": "", "/free/%2e%2e/admin": "", "/free/..%2fadmin/x": "", "/admin/./x": "", "//admin": "", "/free#/../admin": "/free",
		"/free/..;/admin": "400", "/free/..%5cadmin": "400", `/free\..\admin`: "400", "/admin/..;/x": "",
	} {
		check := func(protocol string, status int, sent string) {
			if want == "400" {
				if status != 400 {
					t.Errorf("%s %q: %d, want 400", protocol, target, status)
				}
				return
			}
			if want == "" && status != 401 || want != "" && (status != 200 || sent != want) {
				t.Errorf("%s %q: %d, the backend was asked for %q, want %q", protocol, target, status, sent, want)
			}
		}
		r := askRaw(t, g, get("a.test", target))
		check("HTTP/1.1", r.Status, sentTarget(r.Body))
		if strings.HasPrefix(target, "//") || strings.Contains(target, "#") {
			continue // Go's client makes another one of it.
		}
		status, head := askH2(t, client, "a.test", target)
		check("HTTP/2", status, sentTarget(head))
	}
}

// A whole URL in the request line names the host that counts.
func checkAbsoluteForms(t *testing.T, g *headgatetest.Instance, host string) {
	t.Helper()
	for _, c := range []struct{ line, header, target, sent string }{
		{"http://" + host + "/a%2Fb?", host, "/a%2Fb?", host},
		{"http://" + host + "/a%2Fb//c?x=%20", "other.test", "/a%2Fb//c?x=%20", host},
		{"http://" + strings.ToUpper(host) + ":8080/", "other.test", "/", host},
		{"http://" + host + ":8080/", host + ":9090", "/", host + ":9090"},
		{"https://" + host + "/x", "plain.test.evil", "/x", host},
		{"http://" + host, "other.test", "/", host},
		{"http://" + host + "?x=1", "other.test", "/?x=1", host},
	} {
		r := askRaw(t, g, get(c.header, c.line))
		header := sentHeader(r.Body)
		if r.Status != http.StatusOK || sentTarget(r.Body) != c.target || header.Get("Host") != c.sent || header.Get("X-Forwarded-Host") != c.sent {
			t.Errorf("%s with Host %s: %d, the backend got:\n%s", c.line, c.header, r.Status, r.Body)
		}
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	address := startWire(t, "X-Wire: a\r\n").address
	other := startWire(t, "X-Wire: b\r\n").address
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	g := headgatetest.Start(t, headgatetest.Options{Manifests: "---\nkind: Service\napiVersion: v1\nmetadata: {name: two}\n" +
		"spec: {ports: [{name: http, port: 80}, {name: other, port: 81, targetPort: 8081}]}\n" +
		"---\nkind: EndpointSlice\napiVersion: discovery.k8s.io/v1\n" +
		"metadata: {name: two, labels: {kubernetes.io/service-name: two}}\naddressType: IPv4\n" +
		"ports: [{name: http, port: " + port(address) + "}, {name: other, port: " + port(other) + "}]\nendpoints: [{addresses: [127.0.0.1]}]\n" +
		headgatetest.Service("empty") + headgatetest.Endpoints("empty") +
		ruled("web", "two.test Prefix /number two 80", "two.test Prefix /name two http", "two.test Prefix /number2 two 81",
			"two.test Prefix /name2 two other", "two.test Prefix /nothere two 82", "two.test Prefix /empty empty", "two.test Prefix /missing missing")})
	for _, want := range []string{
		"/number a", "/name a", "/number2 b", "/name2 b", "/nothere 503", "/empty 503", "/missing 503",
	} {
		checkPath(t, g, "two.test", want)
	}
	g.Apply(served("missing", address))
	checkPath(t, g, "two.test", "/missing a")
	g.Apply(headgatetest.Endpoints("empty", other))
	checkPath(t, g, "two.test", "/empty b")
	g.Delete(headgatetest.Service("missing"))
	checkPath(t, g, "two.test", "/missing 503")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}
