package process_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func start(t *testing.T, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Ingress("web", "a.test", "/", "a") +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.Config(keys...)})
}

// ask sends bytes and reads up to n answers. It returns how many came, whether
// the last one said that the connection ends, and whether it did.
func ask(t *testing.T, g *headgatetest.Instance, text string, n int) (answers int, announced, ended bool) {
	t.Helper()
	connection, err := net.Dial("tcp", headgatetest.Address(g.HTTP))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	for answers < n {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			break
		}
		_, _ = io.Copy(io.Discard, response.Body)
		answers, announced = answers+1, response.Close
	}
	_, err = reader.ReadByte()
	timeout, ok := err.(net.Error)
	return answers, announced, err != nil && !(ok && timeout.Timeout())
}

const request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"

func TestClientConnections(t *testing.T) {
	t.Parallel()
	g := start(t, "keep-alive-requests: 2", "keep-alive: 1", "client-header-timeout: 1", "client-body-timeout: 1")
	if n, announced, ended := ask(t, g, request+request+request, 3); n != 2 || !ended || !announced {
		t.Errorf("keep-alive-requests 2: %d answers, ended %v, announced %v", n, ended, announced)
	}
	if n, _, ended := ask(t, g, request, 1); n != 1 || !ended {
		t.Errorf("keep-alive 1: %d answers, ended %v", n, ended)
	}
	if n, _, ended := ask(t, g, "GET / HTTP/1.1\r\nHost: a.test\r\nX-Slow: 1\r\n", 1); n != 0 || !ended {
		t.Errorf("client-header-timeout 1: %d answers, ended %v", n, ended)
	}
	if _, _, ended := ask(t, g, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nx", 1); !ended {
		t.Error("client-body-timeout 1: the connection stayed open")
	}
	g.ApplyReloading(headgatetest.Config("keep-alive: 0"))
	if n, announced, ended := ask(t, g, request, 1); n != 1 || !ended || !announced {
		t.Errorf("keep-alive 0: %d answers, ended %v, announced %v", n, ended, announced)
	}
}

func TestConfigMapChangesLive(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := start(t)
	protocol := func() string {
		t.Helper()
		connection, err := tls.Dial("tcp", headgatetest.Address(g.HTTPS), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		return connection.ConnectionState().NegotiatedProtocol
	}
	if got := protocol(); got != "h2" {
		t.Errorf("at first %s is spoken", got)
	}
	g.ApplyReloading(headgatetest.Config("use-http2: false"))
	if got := protocol(); got != "http/1.1" {
		t.Errorf("with use-http2 false %s is spoken", got)
	}
	g.ApplyReloading(headgatetest.Config("server-tokens: true"))
	for _, host := range []string{"a.test", "unknown.test"} {
		if got := g.Get(host, "/").Header.Get("Server"); got == "" {
			t.Errorf("%s: server-tokens true, and no Server header", host)
		}
	}
	// Only lines of the administrator answer without a type.
	g.ApplyReloading(headgatetest.Config("default-type: application/octet-stream"))
	if conf, err := os.ReadFile(g.RunDir.Conf()); err != nil || !strings.Contains(string(conf), "default_type application/octet-stream;") {
		t.Errorf("default-type is not in nginx.conf: %v", err)
	}
	if got := g.Get("unknown.test", "/").Header.Get("Content-Type"); got != "text/html" {
		t.Errorf("default-type: an error page has the type %q", got)
	}
	for _, n := range []int{1, 3} {
		g.ApplyReloading(headgatetest.Config(fmt.Sprint("worker-processes: ", n)))
		headgatetest.Eventually(t, fmt.Sprint(n, " workers accept"), func() bool { return len(g.State().Accepting) == n })
	}
	before := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Config("worker-processes: 3", "no-such-key: 1", "keep-alive: x"))
	g.Get("a.test", "/").WantStatus(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != before {
		t.Errorf("%d reloads for keys that do nothing", n-before)
	}
}

func TestBackendConnections(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	clients := map[string]bool{}
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clients[r.RemoteAddr] = true
	}))
	g := start(t, "upstream-keepalive-requests: 2", "worker-processes: 1")
	g.Apply(headgatetest.Endpoints("a", address))
	for range 8 {
		g.Get("a.test", "/").WantStatus(t, 200)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(clients) != 4 {
		t.Errorf("%d connections for 8 requests, two each", len(clients))
	}
}

// Headers of backends, of error services as well, are hidden from clients, and not from
// Headgate.
func TestHiddenHeaders(t *testing.T) {
	t.Parallel()
	answers := func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Powered-By", "it")
		h.Set("X_One", "it")
		h.Set("X-Else", r.Header.Get("X-Powered-By"))
		h.Set("Server", "mine")
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusTeapot)
		}
	}
	at := headgatetest.StartBackend(t, http.HandlerFunc(answers))
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", at) +
		headgatetest.Ingress("a", "a.test", "/", "a", "auth-url: http://"+at+"/auth", "auth-response-headers: X-Powered-By", "custom-http-errors: 418", "default-backend: a")})
	check := func(keys []string, want string) {
		t.Helper()
		g.ApplyReloading(headgatetest.Config(keys...))
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			for _, path := range []string{"/", "/fails"} {
				h := g.Do(headgatetest.Request{Host: "a.test", Path: path, Scheme: scheme, HTTP2: http2}).Header
				// An error service gets nothing of the auth service's answer.
				of := map[string]string{"/": "it", "/fails": ""}[path]
				if got := fmt.Sprintf("%s,%s,%s", h.Get("X-Powered-By"), h["X_one"], h.Get("Server")); got != want || h.Get("X-Else") != of {
					t.Errorf("%v, %s: got %s and %q, want %s and %q", keys, path, got, h.Get("X-Else"), want, of)
				}
			}
		})
	}
	check([]string{"hide-headers: x_one"}, "it,[],")
	check([]string{"hide-headers: X-Powered-By, X_ONE", "allow-backend-server-header: true"}, ",[],mine")
	// NGINX has a list by itself, which others replace.
	check([]string{"hide-headers: X-Powered-By,X-Other", "hsts: true", "server-tokens: true", "allow-backend-server-header: true"}, ",[it],mine")
}
