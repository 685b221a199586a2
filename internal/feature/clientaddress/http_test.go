package clientaddress_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	proxyproto "github.com/pires/go-proxyproto"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const on = "use-proxy-protocol: true"

func start(t *testing.T, manifests string, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Ingress("web", "a.test", "/", "a") +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + manifests + headgatetest.Config(keys...)})
}

// version2 is a header with a TLV of that many bytes, none if it is negative.
func version2(t *testing.T, from, to string, tlv int) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort(to)))
	if tlv >= 0 {
		if err := h.SetTLVs([]proxyproto.TLV{{Type: 0xEA, Value: make([]byte, tlv)}, {Type: proxyproto.PP2_TYPE_NOOP}}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// local is the header of a load balancer's own connection.
const local = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"

// said is what the headers for a backend say about the client.
func said(r headgatetest.Response) string {
	if r.Echo == nil {
		return fmt.Sprint(r.Status)
	}
	h := r.Echo.Header
	if h.Get("X-Forwarded-For") != h.Get("X-Real-Ip") || h.Get("X-Forwarded-Scheme") != h.Get("X-Forwarded-Proto") || h.Get("X-Scheme") != h.Get("X-Forwarded-Proto") {
		return fmt.Sprint("contradictions: ", h)
	}
	return h.Get("X-Real-Ip") + " " + h.Get("X-Forwarded-Port") + " " + h.Get("X-Forwarded-Proto")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	trusting, other, none := start(t, "", on), start(t, "", on, "proxy-real-ip-cidr: 10.0.0.0/8,127.0.0.2"), start(t, "", on, "proxy-real-ip-cidr: ")
	for _, c := range []struct{ name, header, want string }{
		{"version 1", "PROXY TCP4 203.0.113.7 192.0.2.1 40000 8080\r\n", "203.0.113.7 8080 SCHEME"},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 40000 8080\r\n", "2001:db8::7 8080 SCHEME"},
		{"version 1, port 443", "PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n", "203.0.113.7 443 https"},
		{"version 1, unknown", "PROXY UNKNOWN\r\n", "127.0.0.1 PORT SCHEME"},
		{"version 2", version2(t, "203.0.113.7:40000", "192.0.2.1:8080", -1), "203.0.113.7 8080 SCHEME"},
		{"version 2, IPv6", version2(t, "[2001:db8::7]:40000", "[2001:db8::1]:8080", -1), "2001:db8::7 8080 SCHEME"},
		{"version 2, port 443", version2(t, "203.0.113.7:40000", "192.0.2.1:443", -1), "203.0.113.7 443 https"},
		{"version 2 with TLVs", version2(t, "203.0.113.7:40000", "192.0.2.1:8080", 74), "203.0.113.7 8080 SCHEME"},
		{"version 2 with TLVs, IPv6", version2(t, "[2001:db8::7]:40000", "[2001:db8::1]:8080", 50), "2001:db8::7 8080 SCHEME"},
		{"version 2, local", local, "127.0.0.1 PORT SCHEME"},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			ask := func(g *headgatetest.Instance, want string) {
				t.Helper()
				port := fmt.Sprint(g.HTTP)
				if scheme == "https" {
					port = "443"
				}
				want = strings.NewReplacer("SCHEME", scheme, "PORT", port).Replace(want)
				// A shortcut answers the second one.
				for range 2 {
					if got := said(g.Do(headgatetest.Request{Host: "a.test", Scheme: scheme, HTTP2: http2, Proxy: c.header})); got != want {
						t.Errorf("%s, %s, HTTP/2 %v: %s, want %s", c.name, scheme, http2, got, want)
					}
				}
			}
			ask(trusting, c.want)
			ask(other, "127.0.0.1 PORT SCHEME")
			ask(none, "127.0.0.1 PORT SCHEME")
		})
	}
}

// Without TLS, NGINX takes longer headers.
func TestLongHeader(t *testing.T) {
	t.Parallel()
	g := start(t, "", on)
	if got := said(g.Do(headgatetest.Request{Host: "a.test", Proxy: version2(t, "203.0.113.7:40000", "192.0.2.1:8080", 990)})); got != "203.0.113.7 8080 http" {
		t.Error(got)
	}
}

// A list of trusted networks with a mistake never trusts more than was written.
func TestMistake(t *testing.T) {
	t.Parallel()
	g := start(t, "", on, "proxy-real-ip-cidr: 10.0.0.0/8,127.0.0.0/33")
	if got, want := said(g.Do(headgatetest.Request{Host: "a.test", Proxy: client(7)})), fmt.Sprintf("127.0.0.1 %d http", g.HTTP); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// client is the header of a client's connection.
func client(n int) string { return fmt.Sprintf("PROXY TCP4 203.0.113.%d 192.0.2.1 40000 80\r\n", n) }

func TestChangesLive(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := start(t, "")
	ask := func(header string) string {
		t.Helper()
		connection := headgatetest.Dial(t, g.HTTP)
		defer connection.Close()
		if _, err := io.WriteString(connection, header+"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		// A connection that NGINX resets has no answer either.
		answer, _ := io.ReadAll(connection)
		status, _, _ := strings.Cut(string(answer), "\r\n")
		return status
	}
	for _, c := range []struct{ keys, with, without string }{
		{"use-proxy-protocol: true", "HTTP/1.1 200 OK", ""},
		{"use-proxy-protocol: false", "HTTP/1.1 400 Bad Request", "HTTP/1.1 200 OK"},
		{"use-proxy-protocol: true", "HTTP/1.1 200 OK", ""},
	} {
		g.ApplyReloading(headgatetest.Config(c.keys))
		if got := ask(client(7)); got != c.with {
			t.Errorf("%s: with a header the answer is %q", c.keys, got)
		}
		if got := ask(""); got != c.without {
			t.Errorf("%s: without a header the answer is %q", c.keys, got)
		}
		if err := g.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", c.keys, err)
		}
	}
	headgatetest.Eventually(t, "the log has the connection without a header", func() bool {
		return strings.Contains(g.Log.String(), `broken header: \"GET / HTTP/1.1`)
	})
	g.ApplyReloading(headgatetest.Config(on, "proxy-real-ip-cidr: 192.0.2.0/24"))
	if got, want := said(g.Do(headgatetest.Request{Host: "a.test", Proxy: client(7)})), fmt.Sprintf("127.0.0.1 %d http", g.HTTP); got != want {
		t.Errorf("after a change of proxy-real-ip-cidr: %s, want %s", got, want)
	}
}

// With TLS, a connection without a header is closed before the handshake.
func TestNoHeader(t *testing.T) {
	t.Parallel()
	g := start(t, "", on)
	for _, http2 := range []bool{false, true} {
		if _, err := g.Try(g.NewClient(http2), headgatetest.Request{Host: "a.test", Scheme: "https"}); err == nil {
			t.Error("a handshake without a header succeeds")
		}
	}
}

// The header that the address is taken from goes on to the backend, as the client wrote it, and so does what only looks like one.
func TestHeadersGoOn(t *testing.T) {
	t.Parallel()
	const trusted = "use-forwarded-headers: true"
	client := map[string]string{"X-Forwarded-For-Proxy-Protocol": "192.0.2.7", "Cf-Connecting-Ip": "192.0.2.8", "X-Forwarded-For": "192.0.2.9", "Forwarded": "for=192.0.2.10"}
	header := http.Header{}
	for name, value := range client {
		header.Set(name, value)
	}
	g := start(t, "", trusted)
	for _, c := range []struct {
		keys           []string
		forwarded, was string
	}{
		{[]string{"forwarded-for-header: X-Forwarded-For-Proxy-Protocol"}, "127.0.0.1", "192.0.2.7"},
		{[]string{trusted, "forwarded-for-header: X-Forwarded-For-Proxy-Protocol"}, "192.0.2.7", "192.0.2.7"},
		{[]string{trusted, "forwarded-for-header: CF-Connecting-IP"}, "192.0.2.8", "192.0.2.8"},
		{[]string{trusted, "forwarded-for-header: CF-Connecting-IP", "compute-full-forwarded-for: true"}, "192.0.2.9, 127.0.0.1", "192.0.2.8"},
		{[]string{"enable-real-ip: true"}, "192.0.2.9", "192.0.2.9"},
	} {
		g.Apply(headgatetest.Config(c.keys...))
		r := g.Do(headgatetest.Request{Host: "a.test", Header: header})
		r.WantStatus(t, 200)
		if got := r.Echo.Header.Get("X-Forwarded-For"); got != c.forwarded {
			t.Errorf("%v: X-Forwarded-For %s, want %s", c.keys, got, c.forwarded)
		}
		if got := r.Echo.Header.Get("X-Original-Forwarded-For"); got != c.was {
			t.Errorf("%v: X-Original-Forwarded-For %s, want %s", c.keys, got, c.was)
		}
		for name, value := range client {
			if got := r.Echo.Header.Get(name); name != "X-Forwarded-For" && got != value {
				t.Errorf("%v: %s %q, want %q", c.keys, name, got, value)
			}
		}
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	secure := headgatetest.WithTLS(headgatetest.Ingress("secure", "b.test", "/", "a"), "pair b.test") +
		headgatetest.TLSSecret("pair", headgatetest.NewKeyPair(t, "b", "b.test"))
	g := start(t, secure+headgatetest.Ingress("root", "root.test", "/", "a", "app-root: /app"), on)
	for range 2 {
		for port, want := range map[string]int{"80": 308, "443": 200, "8443": 308} {
			header := "PROXY TCP4 203.0.113.7 192.0.2.1 40000 " + port + "\r\n"
			g.Do(headgatetest.Request{Host: "b.test", Proxy: header}).WantStatus(t, want)
			g.Do(headgatetest.Request{Host: "b.test", Scheme: "https", Proxy: header}).WantStatus(t, 200)
		}
	}
	for port, want := range map[string]string{"80": "http://root.test/app", "443": "https://root.test/app"} {
		header := "PROXY TCP4 203.0.113.7 192.0.2.1 40000 " + port + "\r\n"
		if got := g.Do(headgatetest.Request{Host: "root.test", Proxy: header}).Header.Get("Location"); got != want {
			t.Errorf("port %s: the redirect leads to %s", port, got)
		}
	}
}

func TestHashing(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Ingress("hash", "hash.test", "/", "many", "upstream-hash-by: $remote_addr")+headgatetest.Service("many")+
		headgatetest.Endpoints("many", headgatetest.StartEcho(t, "one"), headgatetest.StartEcho(t, "two")), on)
	seen := map[string]bool{}
	for n := range 32 {
		var first string
		for range 2 {
			got := g.Do(headgatetest.Request{Host: "hash.test", Proxy: client(n)}).Echo.Backend
			if first != "" && got != first {
				t.Errorf("client %d is at %s and at %s", n, first, got)
			}
			first = got
		}
		seen[first] = true
	}
	if len(seen) != 2 {
		t.Errorf("32 clients are all at %v", seen)
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{AccessLog: file, Manifests: headgatetest.Ingress("web", "a.test", "/", "a") + headgatetest.Config(on) +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a"))})
	g.Do(headgatetest.Request{Host: "a.test", Proxy: client(7)}).WantStatus(t, 200)
	headgatetest.Eventually(t, "the access log has the client's address", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "203.0.113.7 - - [")
	})
}

// The status page is for who is on this machine, by the connection and by the header.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	g := start(t, "", on)
	for _, c := range []struct {
		from, header string
		want         int
	}{
		{"127.0.0.1", "PROXY TCP4 127.0.0.1 127.0.0.1 40000 80\r\n", 200},
		{"127.0.0.1", "PROXY UNKNOWN\r\n", 200},
		{"127.0.0.1", client(7), 403},
		{"127.0.0.2", "PROXY TCP4 127.0.0.1 127.0.0.1 40000 80\r\n", 403},
		{"127.0.0.2", "PROXY UNKNOWN\r\n", 403},
	} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}, Timeout: headgatetest.Timeout}
		connection, err := dialer.DialContext(t.Context(), "tcp", headgatetest.Address(g.HTTP))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if err := connection.SetDeadline(time.Now().Add(headgatetest.Timeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(connection, c.header+"GET /nginx_status HTTP/1.1\r\nHost: unknown.test\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(connection)
		if err != nil || !strings.HasPrefix(string(answer), fmt.Sprintf("HTTP/1.1 %d ", c.want)) {
			t.Errorf("from %s with %q: %.60q %v, want %d", c.from, c.header, answer, err, c.want)
		}
	}
}

// A call of a host to this NGINX is for the client whose request it is about.
func TestOwnCall(t *testing.T) {
	t.Parallel()
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Saw", r.Header.Get("X-Real-Ip")+" "+r.Header.Get("X-Forwarded-Port")+" "+r.Header.Get("X-Forwarded-Proto"))
	}))
	g := start(t, headgatetest.Service("auth")+headgatetest.Endpoints("auth", service)+headgatetest.Ingress("auth", "c.test", "/auth", "auth")+
		headgatetest.Ingress("guarded", "c.test", "/", "a", "auth-url: http://$host/auth", "auth-response-headers: X-Saw"), on)
	for range 2 {
		r := g.Do(headgatetest.Request{Host: "c.test", Proxy: client(7)}).WantStatus(t, 200)
		if want := fmt.Sprintf("203.0.113.7 %d http", g.HTTP); r.Echo == nil || r.Echo.Header.Get("X-Saw") != want {
			t.Errorf("the auth service did not see %q: %.200s", want, r.Body)
		}
	}
}

// NGINX looks for an address once more on the jump to a profile, if it has found none. What an
// auth service says of the client must not become one, in the response or from the cache.
func TestAuthServiceNamesNoAddress(t *testing.T) {
	t.Parallel()
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Forwarded-For", "203.0.113.7") }))
	const copies = "auth-response-headers: X-Forwarded-For"
	g := start(t, headgatetest.Ingress("asks", "asks.test", "/", "a", "auth-url: http://"+service+"/", copies)+
		headgatetest.Ingress("cached", "cached.test", "/", "a", "auth-url: http://"+service+"/", copies, "auth-cache-key: x", "auth-cache-duration: 200 10m"), headers, believed)
	for _, host := range []string{"asks.test", "cached.test", "cached.test"} {
		h := g.Get(host, "/").WantStatus(t, 200).Echo.Header
		if h.Get("X-Real-Ip") != peer || h.Get("X-Forwarded-For") != peer || h.Get("X-Original-Forwarded-For") != "" {
			t.Errorf("%s: the backend gets %v", host, h)
		}
	}
}
