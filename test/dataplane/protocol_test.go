package dataplane_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Backends are asked by the protocol of the profile. What Headgate answers itself
// is the same for all: without an endpoint, for one that is dead, or slow; and a
// dead one is passed over.
func TestProtocolsOfBackends(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	backends := map[string]string{
		"https": startTLS(t, false, http.HandlerFunc(speak)), "grpcs": startTLS(t, true, http.HandlerFunc(speak)),
		"grpc": startH2C(t, &connections, http.HandlerFunc(speak)), "fcgi": startFastCGI(t, http.HandlerFunc(speak)),
	}
	annotations := func(way string, more ...string) []string {
		return append([]string{"ssl-redirect: false", "backend-protocol: " + way, "fastcgi-params-configmap: script"}, more...)
	}
	manifests := headgatetest.Config(withHTTP3) + headgatetest.ConfigMap("script", "SCRIPT_FILENAME: /srv/index.php", "APP_ENV: $arg_none") + headgatetest.Service("none") + headgatetest.Endpoints("none") + headgatetest.Service("dead") + headgatetest.Endpoints("dead", "127.0.0.1:1")
	for way, address := range backends {
		manifests += headgatetest.Service(way) + headgatetest.Endpoints(way, address) + headgatetest.Service("half-"+way) + headgatetest.Endpoints("half-"+way, "127.0.0.1:1", address)
		for name, service := range map[string]string{"half-": "half-" + way, "dead-": "dead", "none-": "none"} {
			manifests += headgatetest.Ingress(name+way, name+way+".test", "/", service, annotations(way)...)
		}
		manifests += headgatetest.Ingress(way, way+".test", "/", way, annotations(way, "proxy-read-timeout: 1", "proxy-next-upstream-tries: 1")...) +
			headgatetest.Ingress("guarded-"+way, way+".test", "/guarded", way, annotations(way, "auth-type: odd")...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: manifests})
	for way := range backends {
		t.Run(way, func(t *testing.T) {
			spoken(t, g, way)
			for host, want := range map[string]int{"none-": 503, "dead-": 502} {
				g.Do(headgatetest.Request{Scheme: "https", HTTP2: true, Host: host + way + ".test"}).WantStatus(t, want)
			}
			for range 4 {
				g.Do(headgatetest.Request{Host: "half-" + way + ".test"}).WantStatus(t, 200)
			}
			g.Get(way+".test", "/slow").WantStatus(t, 504)
			if r := g.Get(way+".test", "/accel").WantStatus(t, 200); r.Body != "not followed" {
				t.Errorf("a backend led a request to %q", r.Body)
			}
		})
	}
	// NGINX closes the one that is slow.
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections to the gRPC backend", n)
	}
}

// A said is what a backend heard.
type said struct {
	Proto, Method, Host, Target, Body string
	Header                            http.Header
	Env                               map[string]string
}

// speak answers as paths ask.
func speak(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/slow":
		<-r.Context().Done()
		return
	case "/accel":
		w.Header().Set("X-Accel-Redirect", "/")
		io.WriteString(w, "not followed")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("X-Mine", "1")
	if r.URL.Path == "/gone" {
		w.WriteHeader(http.StatusGone)
	}
	_ = json.NewEncoder(w).Encode(said{r.Proto, r.Method, r.Host, r.URL.RequestURI(), string(body), r.Header, fcgi.ProcessEnv(r)})
}

func spoken(t *testing.T, g *headgatetest.Instance, way string) {
	t.Helper()
	host := way + ".test"
	for _, request := range g.Protocols() {
		request.Method, request.Host, request.Path, request.Body = "POST", host, "/gone/../a%2Fb?x=%20", strings.NewReader("hello")
		request.Header = http.Header{"X-Real-Ip": {"6.6.6.6"}, "X-Forwarded-For": {"7.7.7.7"}, "Proxy": {"evil"}, "X-Own": {"own"}}
		r := g.Do(request).WantStatus(t, 200)
		var heard said
		if err := json.Unmarshal([]byte(r.Body), &heard); err != nil {
			t.Fatal(err)
		}
		if way == "fcgi" {
			checkEnv(t, heard, request.Scheme)
		}
		// Access depends on the path, and this one could mean another.
		if heard.Target != "/a/b?x=%20" || heard.Method != "POST" || heard.Host != host || heard.Body != "hello" {
			t.Errorf("%+v", heard)
		}
		if want := map[string]string{"https": "HTTP/1.1", "grpc": "HTTP/2.0", "grpcs": "HTTP/2.0"}[way]; want != "" && heard.Proto != want {
			t.Errorf("asked by %s", heard.Proto)
		}
		for name, want := range map[string]string{
			"X-Real-Ip": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "X-Original-Forwarded-For": "7.7.7.7", "X-Forwarded-Proto": request.Scheme, "X-Own": "own", "Proxy": "",
		} {
			if got := heard.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if r.Header.Get("X-Mine") != "1" || (heard.Header.Get("X-Request-Id") == "") != (way == "fcgi") {
			t.Errorf("headers: %v", heard.Header)
		}
	}
	g.Get(host, "/gone").WantStatus(t, 410)
}

func checkEnv(t *testing.T, heard said, scheme string) {
	t.Helper()
	for name, want := range map[string]string{
		"DOCUMENT_URI": "/a/b", "REQUEST_SCHEME": scheme, "GATEWAY_INTERFACE": "CGI/1.1", "SCRIPT_FILENAME": "/srv/index.php",
	} {
		if got := heard.Env[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, sent := heard.Env["APP_ENV"]; sent {
		t.Error("a parameter without a value is sent")
	}
}

// A message of gRPC goes to the backend and another comes back before the next is
// sent, and the status comes in trailers.
func TestGRPCStreams(t *testing.T) {
	t.Parallel()
	backend := startH2C(t, &atomic.Int32{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		for n := 1; ; n++ {
			message := make([]byte, 9)
			if _, err := io.ReadFull(r.Body, message); err != nil {
				break
			}
			fmt.Fprintf(w, "\x00\x00\x00\x00\x05%s%d", message[5:], n)
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set("Grpc-Status", "5")
		w.Header().Set("Grpc-Message", r.Header.Get("Te")+" "+r.URL.Path)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Config(withHTTP3) + served("grpc", backend) +
		headgatetest.Ingress("grpc", "grpc.test", "/", "grpc", "backend-protocol: GRPC")})
	clients := []*http.Client{g.NewClient(true)}
	if g.HTTP3() {
		clients = append(clients, g.NewHTTP3Client())
	}
	for _, client := range clients {
		converse(t, client)
	}
}

// converse sends three messages, each after the answer to the one before.
func converse(t *testing.T, client *http.Client) {
	t.Helper()
	defer client.CloseIdleConnections()
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", "https://grpc.test/pkg.Service/Method", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Te": {"trailers"}, "Content-Type": {"application/grpc"}}
	go io.WriteString(writer, "\x00\x00\x00\x00\x04ping")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for n := 1; n <= 3; n++ {
		message := make([]byte, 10)
		if _, err := io.ReadFull(response.Body, message); err != nil || !bytes.Equal(message[5:], fmt.Appendf(nil, "ping%d", n)) {
			t.Fatalf("message %d: %q, %v", n, message, err)
		}
		if n < 3 {
			io.WriteString(writer, "\x00\x00\x00\x00\x04ping")
		}
	}
	writer.Close()
	rest, err := io.ReadAll(response.Body)
	if err != nil || len(rest) != 0 || response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/grpc" {
		t.Errorf("%q, %v, %+v", rest, err, response)
	}
	if status, message := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message"); status != "5" || message != "trailers /pkg.Service/Method" {
		t.Errorf("trailers %q, %q", status, message)
	}
}

// startH2C runs a backend that speaks HTTP/2 without TLS alone, and counts its
// connections.
func startH2C(t *testing.T, connections *atomic.Int32, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func startTLS(t *testing.T, http2 bool, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func startFastCGI(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go fcgi.Serve(listener, handler)
	return listener.Addr().String()
}
