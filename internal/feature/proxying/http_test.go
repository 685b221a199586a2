package proxying_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

func echo(t *testing.T, service string) string {
	t.Helper()
	return headgatetest.Service(service) + headgatetest.Endpoints(service, headgatetest.StartEcho(t, service))
}

// A bodyCase is a limit and what bodies of a length get.
type bodyCase struct {
	host        string
	annotations []string
	limit       int
	// streamedStep is where a body without a length is cut instead, if the
	// route streams.
	streamedStep int
}

var bodyCases = []bodyCase{
	{"default.test", nil, 1 << 20, 0},
	{"bytes.test", []string{"proxy-body-size: 100b"}, 100, 0},
	{"one.test", []string{"proxy-body-size: 1"}, 1, 0},
	{"step.test", []string{"proxy-body-size: 10k"}, 10240, 0},
	{"between.test", []string{"proxy-body-size: 3k"}, 3072, 0},
	{"capital.test", []string{"proxy-body-size: 2M"}, 2 << 20, 0},
	{"large.test", []string{"proxy-body-size: 1500k"}, 1500 << 10, 0},
	{"bad.test", []string{"proxy-body-size: 1t"}, 1 << 20, 0},
	{"streamed.test", []string{"proxy-body-size: 3k", "proxy-request-buffering: off"}, 3072, 5120},
	{"streamed2.test", []string{"proxy-body-size: 5k", "proxy-request-buffering: off"}, 5120, 5120},
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	manifests := echo(t, "a") + headgatetest.Ingress("unlimited", "unlimited.test", "/", "a", "proxy-body-size: 0")
	for i, c := range bodyCases {
		manifests += headgatetest.Ingress("c"+strconv.Itoa(i), c.host, "/", "a", c.annotations...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for _, c := range bodyCases {
		t.Run(c.host, func(t *testing.T) {
			t.Parallel()
			atLength, beyond := c.limit, c.limit+1
			if c.streamedStep > 0 {
				atLength, beyond = c.streamedStep, c.streamedStep+1
			}
			for _, http2 := range []bool{false, true} {
				checkBody(t, g, c.host, http2, true, c.limit, 200)
				checkBody(t, g, c.host, http2, true, c.limit+1, 413)
				checkBody(t, g, c.host, http2, false, atLength, 200)
				checkBody(t, g, c.host, http2, false, beyond, 413)
			}
		})
	}
	t.Run("unlimited", func(t *testing.T) {
		t.Parallel()
		for _, http2 := range []bool{false, true} {
			checkBody(t, g, "unlimited.test", http2, true, 3_000_000, 200)
			checkBody(t, g, "unlimited.test", http2, false, 3_000_000, 200)
		}
	})
	t.Run("paths of one host", func(t *testing.T) {
		g.Apply(headgatetest.Ingress("k2", "paths.test", "/k2", "a", "proxy-body-size: 2k") + headgatetest.Ingress("k5", "paths.test", "/k5", "a", "proxy-body-size: 5k"))
		for path, want := range map[string]int{"/k2": 413, "/k5": 200} {
			g.Do(headgatetest.Request{Method: "POST", Host: "paths.test", Path: path, Body: bytes.NewReader(make([]byte, 3000))}).WantStatus(t, want)
		}
	})
}

// checkBody posts a body of a length, which is announced if known.
func checkBody(t *testing.T, g *headgatetest.Instance, host string, http2, known bool, length, want int) {
	t.Helper()
	scheme := "http"
	if http2 {
		scheme = "https"
	}
	var body io.Reader = bytes.NewReader(make([]byte, length))
	if !known {
		body = io.MultiReader(body)
	}
	r := g.Do(headgatetest.Request{Method: "POST", Scheme: scheme, HTTP2: http2, Host: host, Body: body})
	if r.Status != want || want == 200 && (r.Echo == nil || r.Echo.BodyLength != int64(length)) {
		t.Errorf("%s, HTTP/2 %v, length known %v, %d bytes: %d, want %d", host, http2, known, length, r.Status, want)
	}
}

// The ConfigMap gives the default, live; a static setting takes a reload, all
// else none.
func TestConfigMapChangesLive(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: echo(t, "a") + headgatetest.Ingress("web", "a.test", "/", "a") +
		headgatetest.Ingress("own", "own.test", "/", "a", "proxy-body-size: 1k") + headgatetest.Config("proxy-body-size: 2k")})
	checkBody(t, g, "a.test", false, true, 3000, 413)
	g.ApplyReloading(headgatetest.Config("proxy-body-size: 4k"))
	checkBody(t, g, "a.test", false, true, 3000, 200)
	checkBody(t, g, "a.test", false, false, 4097, 413)
	checkBody(t, g, "own.test", false, true, 1025, 413)
	g.ApplyReloading(headgatetest.Config())
	checkBody(t, g, "a.test", false, true, 900_000, 200)

	before := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Config("proxy-read-timeout: 7", "proxy-connect-timeout: 5s"))
	checkBody(t, g, "a.test", false, true, 900_000, 200)
	host, err := g.Client.Unit(t.Context(), unit.Host.Key("a.test"))
	if err != nil || !strings.Contains(string(host.Payload), `"read":7`) || !strings.Contains(string(host.Payload), `"connect":5,`) {
		t.Errorf("the route has other timeouts: %s, %v", host.Payload, err)
	}
	if n := g.Value(g.Metrics.Reloads); n != before {
		t.Errorf("%d reloads for timeouts, want none", n-before)
	}
}

// A slow backend answers in the way that a request's path asks for.
func slow(t *testing.T) string {
	t.Helper()
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pause := func(d time.Duration) {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		}
		// Go notices that a client left only once its body is read.
		_, _ = io.Copy(io.Discard, r.Body)
		flush := func() { _ = http.NewResponseController(w).Flush() }
		switch r.URL.Path {
		case "/never":
			<-r.Context().Done()
		case "/in-body":
			fmt.Fprint(w, "begun")
			flush()
			<-r.Context().Done()
		case "/pauses":
			for range 4 {
				fmt.Fprint(w, "part")
				flush()
				pause(900 * time.Millisecond)
			}
		case "/headers":
			for i := range 10 {
				w.Header().Set("X-Bulk-"+strconv.Itoa(i), strings.Repeat("x", 900))
			}
		case "/large":
			_, _ = w.Write(make([]byte, 3_000_000))
		}
	}))
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	service := headgatetest.Service("slow") + headgatetest.Endpoints("slow", slow(t))
	// Three seconds are far more than each of the backend's pauses, and less than
	// all of them.
	const pauses = "partpartpartpart"
	g := headgatetest.Start(t, headgatetest.Options{Manifests: service +
		headgatetest.Ingress("short", "short.test", "/", "slow", "proxy-read-timeout: 3") +
		headgatetest.Ingress("named", "named.test", "/", "slow", "proxy-read-timeout: 3", "proxy-body-size: 3m") +
		headgatetest.Ingress("bad", "bad.test", "/", "slow", "proxy-read-timeout: 1s", "proxy-connect-timeout: x") +
		headgatetest.Ingress("most", "most.test", "/", "slow", "proxy-read-timeout: 31536000", "proxy-connect-timeout: 31536000", "proxy-send-timeout: 31536000") +
		headgatetest.Ingress("lost", "lost.test", "/", "lost", "proxy-connect-timeout: 1") + headgatetest.Service("lost") + headgatetest.Endpoints("lost", headgatetest.StartFull(t))})
	for _, host := range []string{"short.test", "named.test"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			// Of a POST that was sent nothing is tried again.
			g.Do(headgatetest.Request{Method: "POST", Host: host, Path: "/never", Body: strings.NewReader("x")}).WantStatus(t, 504)
			if took := time.Since(began); took < 2900*time.Millisecond {
				t.Errorf("504 after %v", took)
			}
			client := g.NewClient(false)
			defer client.CloseIdleConnections()
			if r, err := g.Try(client, headgatetest.Request{Host: host, Path: "/in-body"}); err == nil {
				t.Errorf("an answer that stopped in its body came as %d %q", r.Status, r.Body)
			}
			if r := g.Get(host, "/pauses").WantStatus(t, 200); r.Body != pauses {
				t.Errorf("with pauses shorter than the timeout: %q", r.Body)
			}
		})
	}
	t.Run("bad values", func(t *testing.T) {
		t.Parallel()
		if r := g.Get("bad.test", "/pauses").WantStatus(t, 200); r.Body != pauses {
			t.Errorf("got %q", r.Body)
		}
	})
	t.Run("the longest", func(t *testing.T) {
		t.Parallel()
		if r := g.Get("most.test", "/pauses").WantStatus(t, 200); r.Body != pauses {
			t.Errorf("got %q", r.Body)
		}
	})
	t.Run("connect", func(t *testing.T) {
		t.Parallel()
		began := time.Now()
		g.Get("lost.test", "/").WantStatus(t, 504)
		// Three tries of a second; with the default they took fifteen.
		if took := time.Since(began); took < 900*time.Millisecond || took > 12*time.Second {
			t.Errorf("504 after %v", took)
		}
	})
}

func TestBuffers(t *testing.T) {
	t.Parallel()
	host := func(name string, annotations ...string) string {
		return headgatetest.Ingress(name, name+".test", "/", "slow", annotations...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("slow") + headgatetest.Endpoints("slow", slow(t)) +
		host("default") + host("size16k", "proxy-buffer-size: 16k") + host("size9k", "proxy-buffer-size: 9k") +
		host("buffered", "proxy-buffering: on") + host("two", "proxy-buffering: on", "proxy-buffers-number: 2", "proxy-buffer-size: 8k") +
		host("bad", "proxy-buffering: yes", "proxy-buffers-number: many", "proxy-buffer-size: 4q") + host("small", "proxy-buffer-size: 1", "proxy-buffering: on")})
	for name, want := range map[string]int{
		"default": 502, "bad": 502, "small": 502, "buffered": 502, "size16k": 200, "size9k": 200,
	} {
		if r := g.Get(name+".test", "/headers"); r.Status != want {
			t.Errorf("%s: 9 KB of headers got %d, want %d", name, r.Status, want)
		}
	}
	for _, name := range []string{"default", "size16k", "buffered", "two", "bad", "small"} {
		if r := g.Get(name+".test", "/large").WantStatus(t, 200); len(r.Body) != 3_000_000 {
			t.Errorf("%s: %d bytes of 3,000,000", name, len(r.Body))
		}
	}
}

// TestBuffering: with proxy-buffering on, a backend gets rid of an answer that
// its client does not read yet; else, and without a file for it, it must wait
// for the client.
func TestBuffering(t *testing.T) {
	t.Parallel()
	const length = 64 << 20
	written := make(chan string, 3)
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(length))
		chunk := make([]byte, 1<<20)
		for range length >> 20 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		written <- r.Host
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", address) +
		headgatetest.Ingress("buffered", "buffered.test", "/", "a", "proxy-buffering: on") +
		headgatetest.Ingress("no-file", "no-file.test", "/", "a", "proxy-buffering: on", "proxy-max-temp-file-size: 0") + headgatetest.Ingress("direct", "direct.test", "/", "a")})
	client := g.NewClient(false)
	t.Cleanup(client.CloseIdleConnections)
	open := func(host string) io.ReadCloser {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response.Body
	}
	direct, noFile := open("direct.test"), open("no-file.test")
	defer direct.Close()
	defer noFile.Close()
	buffered := open("buffered.test")
	defer buffered.Close()
	if first := receive(t, written); first != "buffered.test" {
		t.Errorf("%s had its answer taken before the client read it", first)
	}
	for host, answer := range map[string]io.Reader{"direct.test": direct, "no-file.test": noFile} {
		if _, err := io.Copy(io.Discard, answer); err != nil {
			t.Error(err)
		}
		if next := receive(t, written); next != host {
			t.Errorf("then %s, want %s", next, host)
		}
	}
}

// TestRequestBuffering: a backend is asked once the body is there whole, or at
// once.
func TestRequestBuffering(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 4)
	address := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Host
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", address) + echo(t, "e") +
		headgatetest.Ingress("whole", "whole.test", "/", "a") + headgatetest.Ingress("bad", "bad.test", "/", "a", "proxy-request-buffering: maybe") +
		headgatetest.Ingress("direct", "direct.test", "/", "a", "proxy-request-buffering: off") + headgatetest.Ingress("other", "other.test", "/", "e")})
	var connections []net.Conn
	for _, host := range []string{"whole.test", "bad.test", "direct.test"} {
		connection, err := net.Dial("tcp", headgatetest.Address(g.HTTP))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\nConnection: close\r\n\r\nfirst", host)
		connections = append(connections, connection)
		// By the time of these answers the one worker has read what came
		// before, and would have asked.
		for range 5 {
			g.Get("other.test", "/").WantStatus(t, 200)
		}
	}
	if first := receive(t, asked); first != "direct.test" {
		t.Errorf("%s was asked first", first)
	}
	for _, connection := range connections {
		io.WriteString(connection, "secnd")
	}
	for _, connection := range connections {
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil || response.StatusCode != 200 {
			t.Errorf("%v, %v", response, err)
		}
	}
	if a, b := receive(t, asked), receive(t, asked); a == b || a == "direct.test" || b == "direct.test" {
		t.Errorf("then %s and %s", a, b)
	}
}

// receive waits for the next host that a backend reports.
func receive(t *testing.T, hosts <-chan string) string {
	t.Helper()
	select {
	case host := <-hosts:
		return host
	case <-time.After(headgatetest.Timeout):
		t.Fatal("the backend waits")
		return ""
	}
}
