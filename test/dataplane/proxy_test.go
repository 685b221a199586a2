package dataplane_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
	"github.com/headgate/headgate/test/echo"
)

// deadAddress is one at which nothing listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	return headgatetest.Address(porttest.Free(t))
}

func TestTurnsAreEven(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Ingress("web", "a.test", "/", "three") + served("three",
		headgatetest.StartEcho(t, "one"), headgatetest.StartEcho(t, "two"), headgatetest.StartEcho(t, "three"))})
	const each = 60
	got := map[string]int{}
	for range 3 * each {
		if r := g.Get("a.test", "/").WantStatus(t, 200); r.Echo != nil {
			got[r.Echo.Backend]++
		}
	}
	// Each of two workers takes turns by itself, so that either may be one ahead.
	for _, name := range []string{"one", "two", "three"} {
		if n := got[name]; n < each-2 || n > each+2 {
			t.Errorf("%s had %d requests of %d: %v", name, n, 3*each, got)
		}
	}
}

func TestEndpointsThatRefuseAreTriedElsewhere(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Ingress("web", "a.test", "/", "half") +
		served("half", deadAddress(t), headgatetest.StartEcho(t, "alive")) +
		headgatetest.Ingress("named", "named.test", "/", "half", "proxy-body-size: 3m") +
		headgatetest.Ingress("gone", "gone.test", "/", "dead") + served("dead", deadAddress(t))})
	for i := range 8 {
		host := []string{"a.test", "named.test"}[i%2]
		g.Get(host, "/").WantStatus(t, 200)
		// Nothing of it was sent yet, so that it may be tried again too.
		g.Do(headgatetest.Request{Method: "POST", Host: host, Body: strings.NewReader("body")}).WantStatus(t, 200)
	}
	g.Get("gone.test", "/").WantStatus(t, 502)
}

func TestIPv6Endpoint(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatalf("this test needs the address ::1 (net.ipv6.conf.lo.disable_ipv6=0): %v", err)
	}
	server := httptest.NewUnstartedServer(echo.Handler("six"))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	address := netip.MustParseAddrPort(listener.Addr().String())
	g := headgatetest.Start(t, headgatetest.Options{
		Manifests: headgatetest.Ingress("web", "a.test", "/", "six") + served("six", address.String()),
	})
	if r := g.Get("a.test", "/").WantStatus(t, 200); !strings.Contains(r.Body, "backend: six\n") {
		t.Errorf("got %q", r.Body)
	}
}

func TestConnectionsToBackendsAreKept(t *testing.T) {
	t.Parallel()
	w := startWire(t, "")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: served("w", w.address) +
		headgatetest.Ingress("plain", "plain.test", "/", "w") + headgatetest.Ingress("named", "named.test", "/", "w", "proxy-body-size: 3m")})
	for range 40 {
		g.Get("plain.test", "/").WantStatus(t, 200)
		g.Get("named.test", "/").WantStatus(t, 200)
	}
	// One for each worker.
	if n := w.connections.Load(); n > 2 {
		t.Errorf("%d connections for 80 requests, one after the other", n)
	}
	g.ApplyReloading(headgatetest.Config("upstream-keepalive-connections: 0"))
	w.connections.Store(0)
	r := g.Get("plain.test", "/")
	g.Get("plain.test", "/")
	if n := w.connections.Load(); n != 2 || sentHeader(r.Body).Get("Connection") != "close" {
		t.Errorf("with no connection kept: %d for 2 requests, Connection: %q", n, sentHeader(r.Body).Get("Connection"))
	}
}

const webSocketHead = "GET /ws?x=1 HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

func TestStreamsPass(t *testing.T) {
	t.Parallel()
	steps := newSteps()
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Steps") != "" {
			steps.ServeHTTP(w, r)
			return
		}
		echo.Handler("one").ServeHTTP(w, r)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("s", backend) +
		headgatetest.Ingress("plain", "plain.test", "/", "s") +
		headgatetest.Ingress("named", "named.test", "/", "s", "proxy-body-size: 3m") +
		headgatetest.Ingress("upload", "upload.test", "/", "s", "proxy-request-buffering: off")})
	for _, host := range []string{"plain.test", "named.test"} {
		t.Run("WebSocket over http, "+host, func(t *testing.T) { checkWebSocket(t, headgatetest.Dial(t, g.HTTP), host) })
		t.Run("WebSocket over https, "+host, func(t *testing.T) {
			secured := tls.Client(headgatetest.Dial(t, g.HTTPS), &tls.Config{InsecureSkipVerify: true, ServerName: host})
			checkWebSocket(t, secured, host)
		})
		t.Run("events, "+host, func(t *testing.T) { checkEvents(t, g, steps, host) })
	}
	t.Run("upload", func(t *testing.T) { checkUpload(t, g, steps) })
	t.Run("continue", func(t *testing.T) { checkContinue(t, g) })
	t.Run("large body", func(t *testing.T) { checkLargeBody(t, g) })
}

func checkWebSocket(t *testing.T, connection net.Conn, host string) {
	t.Helper()
	fmt.Fprintf(connection, webSocketHead, host)
	reader := bufio.NewReader(connection)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != 101 || answer.Header.Get("Upgrade") != "websocket" || answer.Header.Get("Sec-WebSocket-Accept") == "" {
		t.Fatalf("answer %d, %v", answer.StatusCode, answer.Header)
	}
	for _, message := range []string{"hello", "world"} {
		// A text frame with a mask of zeros.
		frame := append([]byte{0x81, 0x80 | byte(len(message)), 0, 0, 0, 0}, message...)
		if _, err := connection.Write(frame); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 2+len(message))
		if _, err := io.ReadFull(reader, got); err != nil {
			t.Fatal(err)
		}
		if want := append([]byte{0x81, byte(len(message))}, message...); !bytes.Equal(got, want) {
			t.Errorf("sent %q, got %q", message, got)
		}
	}
}

// steps is a backend that goes on when the test has seen what came before.
type steps struct {
	next chan struct{}
	read chan string
}

func newSteps() *steps { return &steps{make(chan struct{}), make(chan string)} }

func (s *steps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.takeUpload(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 3 {
		fmt.Fprintf(w, "data: %d\n\n", i)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-s.next:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *steps) takeUpload(w http.ResponseWriter, r *http.Request) {
	buffer := make([]byte, 5)
	for {
		if _, err := io.ReadFull(r.Body, buffer); err != nil {
			fmt.Fprintf(w, "chunked: %v", len(r.TransferEncoding) > 0)
			return
		}
		select {
		case s.read <- string(buffer):
		case <-time.After(headgatetest.Timeout):
			return
		}
	}
}

// checkEvents reads each event before the backend goes on to the next.
func checkEvents(t *testing.T, g *headgatetest.Instance, s *steps, host string) {
	t.Helper()
	connection := headgatetest.Dial(t, g.HTTP)
	fmt.Fprintf(connection, "GET /events HTTP/1.1\r\nHost: %s\r\nX-Steps: 1\r\nConnection: close\r\n\r\n", host)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	body := bufio.NewReader(response.Body)
	for i := range 3 {
		line, err := body.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
			t.Fatalf("got %q, %v; want %q", line, err, want)
		}
		if _, err := body.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		s.next <- struct{}{}
	}
}

// checkUpload sends each piece when the backend has got the one before.
func checkUpload(t *testing.T, g *headgatetest.Instance, s *steps) {
	t.Helper()
	for _, c := range []struct {
		head, form, end string
		chunked         bool
	}{
		{"Content-Length: 15\r\n", "%s", "", false},
		{"Transfer-Encoding: chunked\r\n", "5\r\n%s\r\n", "0\r\n\r\n", true},
	} {
		connection := headgatetest.Dial(t, g.HTTP)
		io.WriteString(connection, "POST /up HTTP/1.1\r\nHost: upload.test\r\nX-Steps: 1\r\nConnection: close\r\n"+c.head+"\r\n")
		for _, piece := range []string{"first", "secnd", "third"} {
			fmt.Fprintf(connection, c.form, piece)
			select {
			case got := <-s.read:
				if got != piece {
					t.Errorf("the backend read %q, want %q", got, piece)
				}
			case <-time.After(headgatetest.Timeout):
				t.Fatalf("the backend never got %q", piece)
			}
		}
		io.WriteString(connection, c.end)
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if want := fmt.Sprintf("chunked: %v", c.chunked); err != nil || string(body) != want {
			t.Errorf("%d %q, %v; want %q", response.StatusCode, body, err, want)
		}
	}
}

func checkContinue(t *testing.T, g *headgatetest.Instance) {
	t.Helper()
	connection := headgatetest.Dial(t, g.HTTP)
	io.WriteString(connection, "POST / HTTP/1.1\r\nHost: plain.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n")
	reader := bufio.NewReader(connection)
	if head, err := readHead(reader); err != nil || head != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("got %q, %v", head, err)
	}
	io.WriteString(connection, "hello")
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "body: 5 bytes") || strings.Contains(string(body), "Expect") {
		t.Errorf("%q, %v", body, err)
	}
}

func checkLargeBody(t *testing.T, g *headgatetest.Instance) {
	t.Helper()
	body := make([]byte, 900_000)
	if _, err := rand.Read(body); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	g.Apply(served("sum", headgatetest.StartEcho(t, "sum")) + headgatetest.Ingress("sum", "sum.test", "/", "sum") +
		headgatetest.Ingress("sum2", "sum2.test", "/", "sum", "proxy-body-size: 3m"))
	for _, r := range []headgatetest.Request{
		{Method: "PUT", Host: "sum.test", Body: bytes.NewReader(body)},
		{Method: "PUT", Host: "sum2.test", Body: bytes.NewReader(body)},
		{Method: "PUT", Host: "sum2.test", Body: io.MultiReader(bytes.NewReader(body))}, // chunked
		{Method: "PUT", Host: "sum2.test", Scheme: "https", HTTP2: true, Body: io.MultiReader(bytes.NewReader(body))},
	} {
		answer := g.Do(r).WantStatus(t, 200)
		if answer.Echo == nil || answer.Echo.BodySum != hex.EncodeToString(sum[:]) || answer.Echo.Chunked {
			t.Errorf("to %s over HTTP/2 %v: the backend saw %+v", r.Host, r.HTTP2, answer.Echo)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{
		Manifests: headgatetest.Ingress("web", "a.test", "/", "w") + served("w", startWire(t, "X-Method: here\r\n").address),
	})
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "FOO"} {
		r := g.Do(headgatetest.Request{Method: method, Host: "a.test", Path: "/m"}).WantStatus(t, 200)
		if r.Header.Get("X-Method") != "here" {
			t.Errorf("%s did not reach the backend", method)
		}
		if method == "HEAD" {
			if r.Body != "" || r.Header.Get("Content-Length") == "" {
				t.Errorf("HEAD: body %q, header %v", r.Body, r.Header)
			}
		} else if !strings.HasPrefix(r.Body, method+" /m ") {
			t.Errorf("%s: the backend saw %q", method, r.Body)
		}
	}
	for text, want := range map[string]int{
		"TRACE /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n":           405,
		"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n": 400,
		"OPTIONS * HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n":          400,
	} {
		if r := askRaw(t, g, text); r.Status != want {
			t.Errorf("%q: %d, want %d", text, r.Status, want)
		}
	}
	if r := g.Do(headgatetest.Request{Method: "HEAD", Host: "unknown.test"}).WantStatus(t, 404); r.Body != "" {
		t.Errorf("HEAD without a host: body %q", r.Body)
	}
}
