package dataplane_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A keyFixture is what the cases of keys_test.go share: the Services echo, play
// (see ServeHTTP), full, to which no client can connect, and stalled, which reads
// nothing; and an auth service.
type keyFixture struct {
	manifests string
	addresses *strings.Replacer
	checked   atomic.Int64

	mu     sync.Mutex
	last   int
	visits map[string]*keyVisit
}

// A keyVisit is a request of a case, known to backends by its mark.
type keyVisit struct {
	instance *headgatetest.Instance
	request  headgatetest.Request
	body     int
	chunked  bool
	mark     string
	// asked is how many endpoints of play were.
	asked atomic.Int64
	// begun is closed when the client has the first part of an answer, ended
	// when the backend has written all of it.
	begun, ended chan struct{}
}

func startKeyFixture(t *testing.T) *keyFixture {
	t.Helper()
	b := &keyFixture{visits: map[string]*keyVisit{}}
	b.manifests = served("echo", headgatetest.StartEcho(t, "echo")) + served("full", headgatetest.StartFull(t)) + served("stalled", startStalled(t)) +
		served("play", headgatetest.StartBackend(t, b), headgatetest.StartBackend(t, b), headgatetest.StartBackend(t, b)) +
		usersSecret + strings.Replace(usersSecret, "{name: users}", "{name: users, namespace: other}", 1) +
		headgatetest.ConfigMap("headers", "X-Custom: one") +
		headgatetest.Ingress("own", "own.test", "/", "echo", "client-body-buffer-size: 8k")
	b.addresses = strings.NewReplacer("AUTH", headgatetest.StartBackend(t, http.HandlerFunc(b.authService)))
	return b
}

// authService answers with what it got, and how often it was asked.
func (b *keyFixture) authService(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Method", r.Method)
	w.Header().Set("X-Redirect", r.Header.Get("X-Auth-Request-Redirect"))
	w.Header().Set("X-Count", strconv.FormatInt(b.checked.Add(1), 10))
	if r.URL.Path == "/cookie" {
		w.Header().Set("Set-Cookie", "auth=1")
	}
	if text, ok := strings.CutPrefix(r.URL.Path, "/status/"); ok {
		status, _ := strconv.Atoi(text)
		w.WriteHeader(status)
	}
}

// startStalled runs a backend that takes connections and reads nothing.
func startStalled(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { connection.Close() })
		}
	}()
	return listener.Addr().String()
}

const largeAnswer = 32 << 20

// ServeHTTP answers as a request's path says, and with its Say- headers.
func (b *keyFixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	b.mu.Lock()
	v := b.visits[r.Header.Get("X-Mark")]
	b.mu.Unlock()
	v.asked.Add(1)
	switch r.URL.Path {
	case "/first":
		answerInParts(w, v)
	case "/headers":
		for i := range 10 {
			w.Header().Set("X-Bulk-"+strconv.Itoa(i), strings.Repeat("x", 900))
		}
	case "/text":
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(compressibleText))
		_, _ = io.WriteString(w, strings.Repeat("x", compressibleText))
	case "/large":
		w.Header().Set("Content-Length", strconv.Itoa(largeAnswer))
		if n, _ := w.Write(make([]byte, largeAnswer)); n == largeAnswer {
			close(v.ended)
		}
	case "/late", "/never":
		wait := map[string]time.Duration{"/late": 1100 * time.Millisecond, "/never": headgatetest.Timeout}[r.URL.Path]
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		for _, name := range []string{"Location", "Set-Cookie"} {
			if value := r.Header.Get("Say-" + name); value != "" {
				w.Header().Set(name, value)
			}
		}
		if status, err := strconv.Atoi(r.URL.Path[1:]); err == nil {
			w.WriteHeader(status)
		} else if w.Header().Get("Location") != "" {
			w.WriteHeader(http.StatusFound)
		}
	}
}

// answerInParts says whether the client got the first part while the second
// one was not yet there. Its length is announced: NGINX hands over chunks as
// they come, however it buffers.
func answerInParts(w http.ResponseWriter, v *keyVisit) {
	w.Header().Set("Content-Length", strconv.Itoa(len("first at once")))
	fmt.Fprint(w, "first ")
	_ = http.NewResponseController(w).Flush()
	select {
	case <-v.begun:
		fmt.Fprint(w, "at once")
	case <-time.After(5 * time.Second):
		fmt.Fprint(w, "   late")
	}
}

// check changes a key, and changes it back.
func (b *keyFixture) check(t *testing.T, c keyCase) {
	config := func(value string) string {
		keys := c.beside
		if value != "-" {
			keys = append([]string{c.key + ": " + value}, keys...)
		}
		return b.addresses.Replace(headgatetest.Config(keys...))
	}
	path := c.path
	if path == "" {
		path = "/"
	}
	ingress := b.addresses.Replace(headgatetest.Ingress("a", "a.test", path, c.service, c.annotations...))
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: b.manifests + ingress + config(c.before)})
	b.want(t, g, c, c.before, c.was)
	reloads := g.Value(g.Metrics.Reloads)
	g.Apply(config(c.after))
	b.want(t, g, c, c.after, c.is)
	if n := g.Value(g.Metrics.Reloads) - reloads; n != c.reloads {
		t.Errorf("from %s to %s made %d reloads, want %d", c.before, c.after, n, c.reloads)
	}
	if !c.slow {
		g.Apply(config(c.before))
		b.want(t, g, c, c.before+" again", c.was)
	}
}

// want looks at what is answered over HTTP/1.1 and HTTP/2.
func (b *keyFixture) want(t *testing.T, g *headgatetest.Instance, c keyCase, value, want string) {
	t.Helper()
	var group sync.WaitGroup
	for _, http2 := range []bool{false, true} {
		scheme := map[bool]string{false: "http", true: "https"}[http2]
		group.Go(func() {
			v := b.visit(g, c.request, c.body, c.chunked, scheme, http2)
			if got := strings.ReplaceAll(c.see(b, v), scheme+"://a.test", "SCHEME://a.test"); got != want {
				t.Errorf("%s: %s, HTTP/2 %v: got %q, want %q", c.key, value, http2, got, want)
			}
		})
	}
	group.Wait()
}

func (b *keyFixture) visit(g *headgatetest.Instance, r headgatetest.Request, body int, chunked bool, scheme string, http2 bool) *keyVisit {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	v := &keyVisit{
		instance: g, request: r, body: body, chunked: chunked, mark: fmt.Sprintf("mark-%d-", b.last), begun: make(chan struct{}), ended: make(chan struct{}),
	}
	v.request.Host, v.request.Scheme, v.request.HTTP2 = "a.test", scheme, http2
	v.request.Header = http.Header{"X-Mark": {v.mark}}
	maps.Copy(v.request.Header, r.Header)
	b.visits[v.mark] = v
	return v
}

// do asks, and gives up after a while. Without an answer the status is 0.
func (v *keyVisit) do(timeout time.Duration) headgatetest.Response {
	r := v.request
	if v.body > 0 {
		r.Body = bytes.NewReader(make([]byte, v.body))
	}
	if v.chunked {
		r.Body = io.MultiReader(r.Body)
	}
	client := v.instance.NewClient(r.HTTP2)
	defer client.CloseIdleConnections()
	client.Timeout = timeout
	response, err := v.instance.Try(client, r)
	if err != nil {
		return headgatetest.Response{Header: http.Header{}}
	}
	if response.Echo == nil {
		response.Echo = &headgatetest.Echo{}
	}
	return response
}

func (v *keyVisit) ask() headgatetest.Response { return v.do(headgatetest.Timeout) }

func status(_ *keyFixture, v *keyVisit) string { return strconv.Itoa(v.ask().Status) }

// header sees the status and a header.
func header(name string) func(*keyFixture, *keyVisit) string {
	return func(_ *keyFixture, v *keyVisit) string {
		r := v.ask()
		return fmt.Sprint(r.Status, " ", strings.Join(r.Header.Values(name), "|"))
	}
}

// received sees a header that the backend got.
func received(name string) func(*keyFixture, *keyVisit) string {
	return func(_ *keyFixture, v *keyVisit) string { return v.ask().Echo.Header.Get(name) }
}

// sameTwice sees whether the backend gets the same twice.
func sameTwice(name string) func(*keyFixture, *keyVisit) string {
	return func(b *keyFixture, v *keyVisit) string {
		switch first, second := received(name)(b, v), received(name)(b, v); {
		case first == "" || second == "":
			return "none"
		case first == second:
			return "one answer"
		}
		return "two answers"
	}
}

// inTime sees whether there is an answer before a client's timeout.
func inTime(_ *keyFixture, v *keyVisit) string {
	if r := v.do(8 * time.Second); r.Status != 0 {
		return strconv.Itoa(r.Status)
	}
	return "none"
}

func tries(_ *keyFixture, v *keyVisit) string {
	r := v.ask()
	return fmt.Sprintf("%d after %d", r.Status, v.asked.Load())
}

func askedBy(_ *keyFixture, v *keyVisit) string { return v.ask().Echo.Proto }

// length sees how the backend got a body.
func length(_ *keyFixture, v *keyVisit) string {
	echo := v.ask().Echo
	text := fmt.Sprintf("%d bytes", echo.BodyLength)
	if !echo.Chunked {
		text += " announced"
	}
	return text
}

// written sees a directive of nginx.conf as the default profile has it.
func written(directive string) func(*keyFixture, *keyVisit) string {
	return func(_ *keyFixture, v *keyVisit) string {
		conf, err := os.ReadFile(v.instance.RunDir.Conf())
		if err != nil {
			return err.Error()
		}
		found := regexp.MustCompile(directive + ` ([^;]+);`).FindSubmatch(conf)
		if found == nil {
			return "nothing"
		}
		return string(found[1])
	}
}
