package dataplane_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// withoutShortcuts is a feature whose module, once a route has its policy, keeps
// workers from learning shortcuts.
func withoutShortcuts() feature.Feature {
	return feature.Feature{
		Name: "without_shortcuts",
		Route: func(_ feature.Values, out *feature.RouteOut) {
			if out.Route.Origin.Ingress == "without" {
				feature.Add(out.Route, "without_shortcuts", struct{}{})
			}
		},
		Lua: featuretest.Modules(map[string]string{"without_shortcuts": `
require("headgate.shortcut").learn = function() end
return { rewrite = function() end }`}),
	}
}

// What a worker remembers of a name changes no answer, and nothing that backends get.
func TestShortcutsAnswerAsLookUpsDo(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	pair := headgatetest.NewKeyPair(t, "secure", "secure.test")
	manifests := served("a", headgatetest.StartEcho(t, "a")) + served("b", headgatetest.StartEcho(t, "b")) + headgatetest.TLSSecret("secure", pair) +
		headgatetest.Ingress("without", "without.test", "/", "a") +
		headgatetest.Ingress("plain", "plain.test", "/", "a") + headgatetest.Ingress("wild", "*.wild.test", "/", "a") +
		headgatetest.Ingress("alias", "named.test", "/", "a", "server-alias: alias.test") +
		ruled("small", "small.test Prefix / a 80", "small.test Exact /x b 80", "small.test Prefix /foo/ b 80") +
		ruled("guarded", "guarded.test Prefix /admin b 80", "", "auth-type: basic", "auth-secret: missing") + ruled("open", "guarded.test Prefix / a 80") +
		headgatetest.Ingress("regex", "regex.test", "/a[0-9]+", "a", "use-regex: true") + headgatetest.Ingress("cors", "cors.test", "/", "a", "enable-cors: true") +
		headgatetest.Ingress("profile", "profile.test", "/", "a", "proxy-buffer-size: 16k") + headgatetest.Ingress("missing", "missing.test", "/", "missing") +
		headgatetest.Ingress("www", "www.moved.test", "/", "a", "from-to-www-redirect: true") + headgatetest.Config(withHTTP3) +
		headgatetest.WithTLS(headgatetest.Ingress("secure", "secure.test", "/", "a"), "secure secure.test")
	start := func(features ...feature.Feature) *headgatetest.Instance {
		g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: append(all.Features(), features...), Manifests: manifests})
		g.Get("without.test", "/").WantStatus(t, 200)
		return g
	}
	instance := start()
	with, without := requester(t, instance), requester(t, start(withoutShortcuts()))
	hosts := []string{
		"plain.test", "any.wild.test", "alias.test", "small.test", "guarded.test", "regex.test", "cors.test", "profile.test", "missing.test", "moved.test",
		"secure.test", "unknown.test",
	}
	for _, host := range hosts {
		for _, path := range []string{"/", "/x", "/foo", "/foo/y", "/admin", "/admin/../x", "/a1", "/x%2Fy//z?q=%20"} {
			for _, method := range []string{"GET", "POST", "OPTIONS"} {
				for i, request := range instance.Protocols() {
					request.Method, request.Host, request.Path = method, host, path
					request.Header = http.Header{"Origin": {"http://o.test"}, "X-Request-Id": {"1"}}
					// The second time there is a shortcut.
					for range 2 {
						if got, want := with(i, request), without(i, request); !reflect.DeepEqual(got, want) {
							t.Errorf("%+v:\n%v\nwithout shortcuts:\n%v", request, got, want)
						}
					}
				}
			}
		}
	}
}

// requester asks over the i-th protocol, by a client that it keeps. A POST gets a body.
func requester(t *testing.T, g *headgatetest.Instance) func(i int, r headgatetest.Request) []string {
	clients := []*http.Client{g.NewClient(false), g.NewClient(false), g.NewClient(true), g.NewHTTP3Client()}
	t.Cleanup(func() {
		for _, client := range clients {
			client.CloseIdleConnections()
		}
	})
	return func(i int, r headgatetest.Request) []string {
		if r.Method == "POST" {
			r.Body = strings.NewReader("body")
		}
		response, err := g.Try(clients[i], r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		return reportOf(response)
	}
}

// reportOf is what of an answer does not depend on ports and time. Over HTTP/3, NGINX says that a body
// has no bytes if it knows in time, and the length of the echo depends on that.
func reportOf(r headgatetest.Response) []string {
	header := maps.Clone(r.Header)
	header.Del("Date")
	header.Del("Content-Length")
	list := []string{fmt.Sprint(r.Status), fmt.Sprint(header)}
	if r.Echo == nil {
		return append(list, r.Body)
	}
	r.Echo.Header.Del("X-Forwarded-Port")
	if r.Echo.Header.Get("Content-Length") == "0" {
		r.Echo.Header.Del("Content-Length")
	}
	return append(list, fmt.Sprintf("%+v", *r.Echo))
}

// countingShortcuts is a feature whose module, once a route has its policy, counts what
// is answered by shortcuts alone.
func countingShortcuts() feature.Feature {
	return feature.Feature{
		Name: "counting_shortcuts",
		Route: func(_ feature.Values, out *feature.RouteOut) {
			if out.Route.Origin.Ingress == "counting" {
				feature.Add(out.Route, "counting_shortcuts", struct{}{})
			}
		},
		Lua: featuretest.Modules(map[string]string{"counting_shortcuts": `
local shortcuts = require("headgate.shortcut")
local enter = shortcuts.enter
local hits = 0
shortcuts.enter = function(shortcut, host_name)
    local hit = enter(shortcut, host_name)
    if hit then hits = hits + 1 end
    return hit
end
return { rewrite = function() ngx.header["X-Hits"] = hits end }`}),
	}
}

// A shortcut answers requests over all protocols, also if another one made it, but not one of which
// the Host names another host than its target.
func TestShortcutsOfEveryProtocol(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: append(all.Features(), countingShortcuts()), Manifests: headgatetest.Config(withHTTP3) +
		served("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("counting", "counting.test", "/", "a") + headgatetest.Ingress("plain", "*.plain.test", "/", "a")})
	hits := func() string { return g.Get("counting.test", "/").WantStatus(t, 200).Header.Get("X-Hits") }
	hits()
	want := 0
	for i, first := range g.Protocols() {
		name := fmt.Sprintf("host-%d.plain.test", i)
		first.Host = name
		g.Do(first).WantStatus(t, 200)
		for _, request := range g.Protocols() {
			for _, method := range []string{"GET", "POST"} {
				request.Method, request.Host = method, name
				want++
				r := g.Do(request).WantStatus(t, 200)
				if got := hits(); got != fmt.Sprint(want) || r.Echo.Host != name {
					t.Errorf("%s %s: %s requests answered by shortcuts, want %d; the backend got one for %s", r.Proto, method, got, want, r.Echo.Host)
				}
			}
		}
	}
	g.Raw("GET http://host-0.plain.test/ HTTP/1.1\r\nHost: counting.test\r\nConnection: close\r\n\r\n")
	if got := hits(); got != fmt.Sprint(want) {
		t.Errorf("%s requests answered by shortcuts, want %d: one had two names", got, want)
	}
}

// A request tries as many endpoints as are allowed, and each once, whether its worker
// has a shortcut or not.
func TestShortcutsAndRetries(t *testing.T) {
	t.Parallel()
	var asked [5]atomic.Int32
	var endpoints []string
	for i := range asked {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		endpoints = append(endpoints, listener.Addr().String())
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				// NGINX has sent the request, and gets no answer to it.
				_, _ = bufio.NewReader(connection).ReadString('\n')
				asked[i].Add(1)
				connection.Close()
			}
		}()
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("five", endpoints...) + headgatetest.Ingress("five", "five.test", "/", "five") +
		served("half", deadAddress(t), deadAddress(t), headgatetest.StartEcho(t, "alive")) + headgatetest.Ingress("half", "half.test", "/", "half") +
		headgatetest.Ingress("five-profile", "profile.five.test", "/", "five", "proxy-buffer-size: 16k") +
		headgatetest.Ingress("half-profile", "profile.half.test", "/", "half", "proxy-buffer-size: 16k") + headgatetest.Config(withHTTP3, "retry-budget: 100")})
	for _, request := range g.Protocols() {
		for round := range 8 {
			prefix := []string{"", "profile."}[round%2]
			for _, c := range []struct {
				method string
				tries  int32
			}{{"GET", 3}, {"HEAD", 3}, {"POST", 1}} {
				for i := range asked {
					asked[i].Store(0)
				}
				request.Method, request.Host = c.method, prefix+"five.test"
				r := g.Do(request).WantStatus(t, 502)
				total, most := int32(0), int32(0)
				for i := range asked {
					n := asked[i].Load()
					total, most = total+n, max(most, n)
				}
				if total != c.tries || most != 1 {
					t.Errorf("round %d: %s %s: %d tries, up to %d of one endpoint, want %d of different ones", round, r.Proto, c.method, total, most, c.tries)
				}
				if c.method == "HEAD" {
					continue
				}
				request.Host = prefix + "half.test"
				g.Do(request).WantStatus(t, 200)
			}
		}
	}
}

// late sends a GET, does something, and sends the request's body then.
func late(t *testing.T, g *headgatetest.Instance, host string, meanwhile func()) string {
	t.Helper()
	return inHalves(t, g, "GET / HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbo", meanwhile, "dy")
}

// lateChunks does so without the body's length.
func lateChunks(t *testing.T, g *headgatetest.Instance, host string, meanwhile func()) string {
	t.Helper()
	return inHalves(t, g, "GET / HTTP/1.1\r\nHost: "+host+"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nbo\r\n", meanwhile, "2\r\ndy\r\n0\r\n\r\n")
}

// inHalves sends a request in two parts, and returns the answer's first line.
func inHalves(t *testing.T, g *headgatetest.Instance, first string, meanwhile func(), second string) string {
	t.Helper()
	connection := headgatetest.Dial(t, g.HTTP)
	defer connection.Close()
	fmt.Fprint(connection, first)
	meanwhile()
	fmt.Fprint(connection, second)
	answer, err := io.ReadAll(connection)
	if err != nil {
		t.Fatal(err)
	}
	status, _, _ := strings.Cut(string(answer), "\r\n")
	return status
}

// A request that waits for its body is routed again when it is there. It never gets to
// what is guarded since then.
func TestShortcutsAndLateBodies(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", headgatetest.StartEcho(t, "a")) + served("b", headgatetest.StartEcho(t, "b")) +
		headgatetest.Ingress("a", "a.test", "/", "a") + headgatetest.Ingress("b", "b.test", "/", "b") +
		headgatetest.Ingress("profile", "profile.test", "/", "a", "proxy-buffer-size: 16k")})
	for _, host := range []string{"a.test", "b.test", "profile.test", "profile.test"} {
		g.Get(host, "/").WantStatus(t, 200)
	}
	for name, c := range map[string]struct {
		meanwhile func()
		want      string
	}{
		"nothing":          {func() {}, "HTTP/1.1 200 OK"},
		"another request":  {func() { g.Get("b.test", "/").WantStatus(t, 200) }, "HTTP/1.1 200 OK"},
		"a failed request": {func() { g.Do(headgatetest.Request{Host: "b.test", Method: "PUT"}).WantStatus(t, 200) }, "HTTP/1.1 200 OK"},
		"new endpoints":    {func() { g.Apply(served("a", headgatetest.StartEcho(t, "new"))) }, "HTTP/1.1 200 OK"},
	} {
		for _, host := range []string{"a.test", "profile.test"} {
			for _, send := range []func(*testing.T, *headgatetest.Instance, string, func()) string{late, lateChunks} {
				if got := send(t, g, host, c.meanwhile); got != c.want {
					t.Errorf("%s: %s meanwhile: %q, want %q", host, name, got, c.want)
				}
			}
		}
	}
	// Without a shortcut it would have its table.
	g.Get("a.test", "/").WantStatus(t, 200)
	got := late(t, g, "a.test", func() {
		g.Apply(headgatetest.Ingress("a", "a.test", "/", "a", "auth-type: basic", "auth-secret: missing"))
		g.Get("b.test", "/").WantStatus(t, 200)
	})
	if !strings.Contains(got, " 50") {
		t.Errorf("a guard meanwhile: %q, want an error", got)
	}
}

// A jump takes a request past NGINX's comparison of its length with the limit.
func TestShortcutsAndLongBodies(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.Ingress("plain", "plain.test", "/", "a") + headgatetest.Ingress("profile", "profile.test", "/", "a", "proxy-buffer-size: 16k")})
	for _, host := range []string{"plain.test", "profile.test"} {
		for _, method := range []string{"GET", "POST"} {
			for range 2 {
				g.Get(host, "/").WantStatus(t, 200)
				if got := announced(t, g, method, host, 2<<20); got != "HTTP/1.1 413 Request Entity Too Large" {
					t.Errorf("%s %s with 2 MiB: %q, want 413", method, host, got)
				}
			}
			g.Do(headgatetest.Request{Method: method, Host: host, Body: strings.NewReader("body")}).WantStatus(t, 200)
		}
	}
}

// announced sends a request's header, and returns the answer's first line.
func announced(t *testing.T, g *headgatetest.Instance, method, host string, length int) string {
	t.Helper()
	connection := headgatetest.Dial(t, g.HTTP)
	defer connection.Close()
	fmt.Fprintf(connection, "%s / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", method, host, length)
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// The access log names the backend, by a shortcut too.
func TestShortcutsInTheAccessLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, AccessLog: file, Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.Ingress("a", "a.test", "/", "a") + served("half", deadAddress(t), headgatetest.StartEcho(t, "alive")) + headgatetest.Ingress("half", "half.test", "/", "half")})
	for i := range 3 {
		for host, label := range map[string]string{"a.test": "default-a-80", "half.test": "default-half-80"} {
			id := fmt.Sprintf("%s-%d", host, i)
			g.Do(headgatetest.Request{Host: host, Header: http.Header{"X-Request-Id": {id}}}).WantStatus(t, 200)
			if got := logged(t, file, id)["upstream"]; got != label {
				t.Errorf("%s: the backend is %q, want %q", id, got, label)
			}
		}
	}
}

// A change ends what workers remember, before and after a reload.
func TestShortcutsEnd(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 2, Manifests: served("a", headgatetest.StartEcho(t, "a")) + served("b", headgatetest.StartEcho(t, "b")) +
		headgatetest.Ingress("a", "a.test", "/", "a")})
	for i := range 20 {
		name := []string{"b", "a"}[i%2]
		g.Apply(headgatetest.Ingress("a", "a.test", "/", name))
		for range 8 {
			wantEcho(t, g.Get("a.test", "/").WantStatus(t, 200), name)
		}
	}
	reload(t, g)
	for i := range 6 {
		name := []string{"b", "a"}[i%2]
		g.Apply(headgatetest.Ingress("a", "a.test", "/", name))
		for range 8 {
			wantEcho(t, g.Get("a.test", "/").WantStatus(t, 200), name)
		}
	}
	g.Delete(headgatetest.Ingress("a", "a.test", "/", "a"))
	for range 8 {
		g.Get("a.test", "/").WantStatus(t, 404)
	}
}
