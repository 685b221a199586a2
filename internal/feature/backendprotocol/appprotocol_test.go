package backendprotocol_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// speaking is a Service whose port has an application protocol.
func speaking(name, appProtocol string) string {
	return strings.Replace(headgatetest.Service(name), "port: 80}", "port: 80, appProtocol: "+appProtocol+"}", 1)
}

// An arrival is what a backend without gRPC, but with HTTP/2, saw of a request.
type arrival struct {
	Proto, Method, Target, Host string
	Length, Read                int64
}

// startCleartext runs a backend that takes HTTP/2 without TLS and, if asked so, HTTP/1.1 on
// the same port.
func startCleartext(t *testing.T, http1 bool) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Read")
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		_ = json.NewEncoder(w).Encode(arrival{r.Proto, r.Method, r.URL.String(), r.Host, r.ContentLength, n})
		if r.URL.Path == "/large" {
			_, _ = io.WriteString(w, strings.Repeat(" ", 3<<20))
		}
		w.Header().Set("X-Read", fmt.Sprint(n))
	}))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.Protocols.SetHTTP1(http1)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestHTTP2Backend: a backend with kubernetes.io/h2c gets plain requests of all clients.
func TestHTTP2Backend(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: speaking("a", "kubernetes.io/h2c") +
		headgatetest.Endpoints("a", startCleartext(t, false)) + headgatetest.Ingress("web", "web.test", "/", "a", "ssl-redirect: false")})
	for _, c := range []struct {
		name, method, path, body string
		unknown                  bool // the length is
		status                   int
	}{
		{"GET", "GET", "/a?b=c", "", false, 200},
		{"404", "GET", "/missing", "", false, 404},
		{"large answer", "GET", "/large", "", false, 200},
		{"POST", "POST", "/", "hello", false, 200},
		{"large POST", "POST", "/", strings.Repeat("x", 900<<10), false, 200},
		{"POST without length", "POST", "/large", strings.Repeat("x", 900<<10), true, 200},
		{"PUT of nothing", "PUT", "/", "", false, 200},
		{"DELETE", "DELETE", "/", "", false, 200},
	} {
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			t.Run(fmt.Sprintf("%s/%s, HTTP/2 %v", c.name, scheme, http2), func(t *testing.T) {
				want := arrival{"HTTP/2.0", c.method, c.path, "web.test", int64(len(c.body)), int64(len(c.body))}
				var sent io.Reader = strings.NewReader(c.body)
				if c.unknown {
					sent, want.Length = io.MultiReader(sent), -1
				}
				r := g.Do(headgatetest.Request{Method: c.method, Scheme: scheme, Host: "web.test", Path: c.path, Body: sent, HTTP2: http2}).WantStatus(t, c.status)
				var got arrival
				if err := json.Unmarshal([]byte(r.Body), &got); err != nil || got != want {
					t.Errorf("the backend got %+v, want %+v: %v, %.200q", got, want, err, r.Body)
				}
				if c.path == "/large" && len(r.Body) < 3<<20 {
					t.Errorf("the answer has %d bytes", len(r.Body))
				}
			})
		})
	}
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		if r := g.Do(headgatetest.Request{Method: "HEAD", Host: "web.test", Scheme: scheme, HTTP2: http2}).WantStatus(t, 200); r.Body != "" {
			t.Errorf("HEAD has a body: %q", r.Body)
		}
	})
	for _, r := range g.Raw("GET / HTTP/1.0\r\nHost: web.test\r\n\r\n") {
		if r.WantStatus(t, 200); !strings.Contains(r.Body, "HTTP/2.0") {
			t.Errorf("HTTP/1.0: %q", r.Body)
		}
	}
	client := g.NewClient(true)
	defer client.CloseIdleConnections()
	response, err := client.Get("https://web.test/large")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.Trailer.Get("X-Read") != "0" {
		t.Errorf("the trailers are %v: %v", response.Trailer, err)
	}
	// HTTP/2 has no upgrades: the backend gets a plain request.
	upgrade := g.Do(headgatetest.Request{Host: "web.test", Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}})
	upgrade.WantStatus(t, 200)
}

// TestAppProtocol: the protocol follows the Service, the annotation and the key, and other names
// change nothing.
func TestAppProtocol(t *testing.T) {
	t.Parallel()
	both := startCleartext(t, true)
	behind := func(name, appProtocol, address string, annotations ...string) string {
		service := headgatetest.Service(name)
		if appProtocol != "" {
			service = speaking(name, appProtocol)
		}
		return service + headgatetest.Endpoints(name, address) + headgatetest.Ingress(name, name+".test", "/", name, append(annotations, "ssl-redirect: false")...)
	}
	pair := headgatetest.NewKeyPair(t, "backend", "backend.test")
	secure := startTLS(t, pair)
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: secret("ca", headgatetest.KeyPair{}, pair.Certificate) +
		secret("other", headgatetest.KeyPair{}, headgatetest.NewKeyPair(t, "other", "backend.test").Certificate) +
		behind("plain", "", both) + behind("h2c", "kubernetes.io/h2c", both) + behind("ws", "kubernetes.io/ws", both) + behind("odd", "example.com/odd", both) +
		behind("http", "kubernetes.io/h2c", both, "backend-protocol: HTTP") + behind("tls", "https", secure) + behind("wss", "kubernetes.io/wss", secure) +
		behind("grpcs", "https", secure, "backend-protocol: GRPCS") +
		behind("verified", "https", secure, "proxy-ssl-secret: default/ca", "proxy-ssl-verify: on", "proxy-ssl-name: backend.test") +
		behind("wrong", "https", secure, "proxy-ssl-secret: default/other", "proxy-ssl-verify: on", "proxy-ssl-name: backend.test") +
		behind("unread", "https", secure, "proxy-ssl-secret: default/ca", "proxy-ssl-verify: yes")})
	proto := func(host string) string {
		r := g.Get(host+".test", "/")
		var got struct{ Proto string }
		if r.Status != 200 || json.Unmarshal([]byte(r.Body), &got) != nil {
			return fmt.Sprint(r.Status)
		}
		return got.Proto
	}
	check := func(about string, want map[string]string) {
		t.Helper()
		for host, proto1 := range want {
			if got := proto(host); got != proto1 {
				t.Errorf("%s: %s is asked by %s, want %s", about, host, got, proto1)
			}
		}
	}
	check("at first", map[string]string{
		"plain": "HTTP/1.1", "h2c": "HTTP/2.0", "ws": "HTTP/1.1", "odd": "HTTP/1.1", "http": "HTTP/1.1", "tls": "HTTP/1.1", "wss": "HTTP/1.1", "grpcs": "HTTP/2.0",
		"verified": "HTTP/1.1", "wrong": "502", "unread": "503",
	})
	for host, version := range map[string]string{"tls": "TLS 1.3", "verified": "TLS 1.2"} {
		if got := hears(t, g, "http", host+".test", "/"); got.Version != version {
			t.Errorf("%s: %+v", host, got)
		}
	}
	before := g.Value(g.Metrics.Reloads)
	g.Apply(speaking("plain", "kubernetes.io/h2c"))
	headgatetest.Eventually(t, "the Service has an appProtocol", func() bool { return proto("plain") == "HTTP/2.0" })
	g.Apply(headgatetest.Service("plain"))
	headgatetest.Eventually(t, "the Service has none", func() bool { return proto("plain") == "HTTP/1.1" })
	if now := g.Value(g.Metrics.Reloads); now != before {
		t.Errorf("%d reloads for a profile that NGINX has", now-before)
	}
	g.Apply(headgatetest.Config("use-app-protocol: false"))
	headgatetest.Eventually(t, "the key counts", func() bool { return proto("h2c") == "HTTP/1.1" })
	check("with the key", map[string]string{"tls": "400", "wss": "400", "grpcs": "HTTP/2.0", "http": "HTTP/1.1", "verified": "400", "wrong": "400", "unread": "400"})
	g.Apply(headgatetest.Config())
	headgatetest.Eventually(t, "the default counts", func() bool { return proto("h2c") == "HTTP/2.0" })
}
