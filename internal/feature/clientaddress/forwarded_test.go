package clientaddress_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// balancer is the header of a load balancer's own connection to another one.
const balancer = "PROXY TCP4 10.0.0.1 192.0.2.1 40000 8080\r\n"

// ways are keys with which a load balancer that ends TLS is believed, and what it sends first. The
// last key says who is believed.
var ways = []struct {
	name  string
	keys  []string
	proxy string
}{
	{"headers", []string{headers, believed}, ""},
	{"another header", []string{headers, custom, believed}, ""},
	{"headers and the PROXY protocol", []string{on, headers, believed}, balancer},
}

// A load balancer that ends TLS and connects to the port for http is not sent to https again.
func TestNoLoop(t *testing.T) {
	t.Parallel()
	secure := headgatetest.WithTLS(headgatetest.Ingress("secure", "b.test", "/", "a"), "pair b.test") +
		headgatetest.TLSSecret("pair", headgatetest.NewKeyPair(t, "b", "b.test")) +
		headgatetest.Ingress("forced", "c.test", "/", "a", "force-ssl-redirect: true")
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			g := start(t, secure, way.keys...)
			for _, host := range []string{"b.test", "c.test"} {
				ask := func(header http.Header, want int, location string) {
					t.Helper()
					for range 2 {
						r := g.Do(headgatetest.Request{Host: host, Path: "/x", Header: header, Proxy: way.proxy}).WantStatus(t, want)
						if got := r.Header.Get("Location"); got != location {
							t.Errorf("the redirect leads to %q, want %q", got, location)
						}
						if got := r.Header.Get("Strict-Transport-Security"); got != "" {
							t.Errorf("without TLS, HSTS is %q", got)
						}
					}
				}
				ask(outer(), 200, "")
				ask(nil, 308, "https://"+host+"/x")
				ask(line("X-Forwarded-Proto", "http"), 308, "https://"+host+"/x")
				ask(line("X-Forwarded-Host", "outer.test:8080"), 308, "https://outer.test/x")
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		g := start(t, secure, headers, other)
		g.Do(headgatetest.Request{Host: "b.test", Header: outer()}).WantStatus(t, 308)
	})
}

// No header makes a client local.
func TestStatusPageAndHeaders(t *testing.T) {
	t.Parallel()
	const path, local = "/nginx_status", "127.0.0.1"
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			g := start(t, "", append(way.keys[:len(way.keys)-1:len(way.keys)-1], "proxy-real-ip-cidr: 0.0.0.0/0")...)
			first := ""
			if way.proxy != "" {
				first = "PROXY TCP4 127.0.0.1 192.0.2.1 40000 80\r\n"
			}
			for _, c := range []struct {
				proxy  string
				header http.Header
				want   int
			}{
				{first, nil, 200},
				{way.proxy, http.Header{"X-Forwarded-For": {local}, "Cf-Connecting-Ip": {local}}, 403},
				{way.proxy, http.Header{"X-Forwarded-For": {local + ", 203.0.113.7"}, "Cf-Connecting-Ip": {local + ", 203.0.113.7"}}, 403},
				{first, http.Header{"X-Forwarded-For": {local}, "Cf-Connecting-Ip": {local}}, 403},
			} {
				g.Do(headgatetest.Request{Host: "unknown.test", Path: path, Header: c.header, Proxy: c.proxy}).WantStatus(t, c.want)
			}
		})
	}
}

// Auth services and mirrors learn the same as backends.
func TestServices(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 16)
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r.Header
	}))
	for _, way := range ways {
		g := start(t, headgatetest.Service("auth")+headgatetest.Endpoints("auth", service)+
			headgatetest.Ingress("guarded", "c.test", "/", "a", "auth-url: http://"+service+"/auth")+
			headgatetest.Ingress("copied", "d.test", "/", "a", "mirror-target: http://"+service+"/copy"), append(way.keys, all)...)
		header := outer("203.0.113.7")
		header["Cf-Connecting-Ip"] = []string{"203.0.113.7"}
		chain := "203.0.113.7, 127.0.0.1"
		if way.proxy != "" {
			chain = "203.0.113.7, 10.0.0.1"
		}
		names := []string{"X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Original-Forwarded-For"}
		for host, want := range map[string][]string{
			// As in ingress-nginx, an auth service does not learn the scheme, and has no chain.
			"c.test": {"203.0.113.7", "203.0.113.7", "outer.test:8443", "8443", "", ""},
			"d.test": {"203.0.113.7", chain, "outer.test:8443", "8443", "https", "203.0.113.7"},
		} {
			g.Do(headgatetest.Request{Host: host, Header: header, Proxy: way.proxy}).WantStatus(t, 200)
			h := <-seen
			var got []string
			for _, name := range names {
				got = append(got, h.Get(name))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", way.name, host, diff)
			}
		}
	}
}

// What a host asks itself is for the client whose request it is about, and says nothing else.
func TestOwnCallAndHeaders(t *testing.T) {
	t.Parallel()
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Saw", r.Header.Get("X-Real-Ip")+" "+r.Header.Get("X-Forwarded-Proto")+" "+r.Host)
	}))
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			g := start(t, headgatetest.Service("auth")+headgatetest.Endpoints("auth", service)+headgatetest.Ingress("auth", "c.test", "/auth", "auth")+
				headgatetest.Ingress("guarded", "c.test", "/", "a", "auth-url: http://$host/auth", "auth-response-headers: X-Saw"), append(way.keys[:len(way.keys)-1:len(way.keys)-1], "proxy-real-ip-cidr: 0.0.0.0/0")...)
			header := outer("203.0.113.7")
			header["Cf-Connecting-Ip"] = []string{"203.0.113.7"}
			r := g.Do(headgatetest.Request{Host: "c.test", Header: header, Proxy: way.proxy}).WantStatus(t, 200)
			if want := "203.0.113.7 http c.test"; r.Echo == nil || r.Echo.Header.Get("X-Saw") != want {
				t.Errorf("the auth service did not see %q: %.300s", want, r.Body)
			}
		})
	}
}

// Where Lua joins the addresses, requests are routed later. The client must not notice.
func TestLater(t *testing.T) {
	t.Parallel()
	manifests := headgatetest.Ingress("away", "a.test", "/away", "a", "permanent-redirect: https://c.test/", "enable-cors: true") +
		headgatetest.Ingress("rewritten", "a.test", "/old", "a", "rewrite-target: /new") +
		headgatetest.Ingress("guarded", "a.test", "/guarded", "a", "auth-type: basic", "auth-secret: none") +
		headgatetest.Ingress("cors", "a.test", "/cors", "a", "enable-cors: true") +
		headgatetest.Ingress("small", "a.test", "/small", "a", "proxy-body-size: 10") +
		headgatetest.Ingress("streamed", "a.test", "/streamed", "a", "proxy-request-buffering: off") +
		headgatetest.Ingress("root", "root.test", "/", "a", "app-root: /app") +
		headgatetest.Ingress("www", "w.test", "/", "a", "from-to-www-redirect: true") +
		headgatetest.Ingress("none", "none.test", "/", "nobody")
	usual, later := start(t, manifests), start(t, manifests, headers, custom, believed)
	for _, c := range []struct{ method, host, path, body string }{
		{"GET", "a.test", "/", ""},
		{"POST", "a.test", "/", "a body"},
		{"POST", "a.test", "/", strings.Repeat("x", 1<<20+1)},
		{"POST", "a.test", "/small", strings.Repeat("x", 11)},
		{"POST", "a.test", "/streamed", strings.Repeat("x", 300<<10)},
		{"GET", "a.test", "/away", ""},
		{"GET", "a.test", "/old?x=y", ""},
		{"GET", "a.test", "/x/../guarded", ""},
		{"GET", "a.test", "/guarded;x", ""},
		{"OPTIONS", "a.test", "/cors", ""},
		{"GET", "a.test", "/cors", ""},
		{"GET", "root.test", "/", ""},
		{"GET", "www.w.test", "/x", ""},
		{"GET", "none.test", "/", ""},
		{"GET", "unknown.test", "/", ""},
		{"GET", "unknown.test", "/healthz", ""},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			ask := func(g *headgatetest.Instance) []any {
				r := headgatetest.Request{Method: c.method, Scheme: scheme, HTTP2: http2, Host: c.host, Path: c.path}
				if c.body != "" {
					r.Body = strings.NewReader(c.body)
				}
				got := g.Do(r)
				got.Header.Del("Date")
				seen := []any{got.Status, got.Header, len(got.Body) > 0}
				if got.Echo != nil {
					seen = append(seen, got.Echo.Method, got.Echo.Target, got.Echo.Header.Get("X-Forwarded-For"))
					got.Header.Del("Content-Length")
				}
				return seen
			}
			for range 2 {
				if diff := cmp.Diff(ask(usual), ask(later)); diff != "" {
					t.Errorf("%s %s%s by %s (-at once +later):\n%s", c.method, c.host, c.path, scheme, diff)
				}
			}
		})
	}
}

// Each key has its effect with the reload after its change.
func TestHeadersChangeLive(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := start(t, "")
	header := outer("198.51.100.1, 203.0.113.7")
	header["Cf-Connecting-Ip"], header["X-Outer-Host"] = []string{"203.0.113.8"}, []string{"host.test"}
	const for_, host = " 198.51.100.1, 203.0.113.7", " outer.test:8443, inner.test"
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{headers, believed}, "203.0.113.7 203.0.113.7 https" + for_ + host},
		{[]string{headers, "proxy-real-ip-cidr: 127.0.0.1,203.0.113.0/24"}, "198.51.100.1 198.51.100.1 https" + for_ + host},
		{[]string{headers, all, believed}, "203.0.113.7 198.51.100.1, 203.0.113.7, 127.0.0.1 https" + for_ + host},
		{[]string{headers, custom, believed}, "203.0.113.8 203.0.113.8 https 203.0.113.8" + host},
		{[]string{address, believed}, "203.0.113.7 203.0.113.7 http" + for_ + host},
		{[]string{address, believed, "forwarded-host-header: x-outer-host"}, "203.0.113.7 203.0.113.7 http" + for_ + " host.test"},
		{nil, "127.0.0.1 127.0.0.1 http" + for_ + host},
	} {
		g.ApplyReloading(headgatetest.Config(c.keys...))
		h := g.Do(headgatetest.Request{Host: "a.test", Header: header}).WantStatus(t, 200).Echo.Header
		got := strings.Join([]string{h.Get("X-Real-Ip"), h.Get("X-Forwarded-For"), h.Get("X-Forwarded-Proto"), h.Get("X-Original-Forwarded-For"), h.Get("X-Original-Forwarded-Host")}, " ")
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.keys, got, c.want)
		}
	}
}

// A line of the PROXY protocol where none is expected is answered 400 on both ports.
func TestProxyLineOnTheWrongPort(t *testing.T) {
	t.Parallel()
	g := start(t, "", headers, "proxy-real-ip-cidr: 0.0.0.0/0")
	for port, want := range map[uint16]string{g.HTTP: "HTTP/1.1 400 Bad Request", g.HTTPS: "HTTP/1.1 400 Bad Request"} {
		connection := headgatetest.Dial(t, port)
		defer connection.Close()
		if _, err := fmt.Fprintf(connection, "%sGET / HTTP/1.1\r\nHost: a.test\r\n\r\n", client(7)); err != nil {
			t.Fatal(err)
		}
		if answer, err := bufio.NewReader(connection).ReadString('\n'); strings.TrimSpace(answer) != want {
			t.Errorf("port %d: %q %v", port, answer, err)
		}
	}
}
