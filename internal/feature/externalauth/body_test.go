package externalauth_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// period is a prime number of bytes, so that no two buffers of a body are alike.
const period = 1_000_003

var periodOf = sync.OnceValue(func() []byte {
	b := make([]byte, period)
	for i := range b {
		b[i] = byte(i * 2654435761 >> 13)
	}
	return b
})

// pattern gives n bytes.
type pattern struct{ at, n int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at == p.n {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.n-p.at)]
	n := copy(b, periodOf()[p.at%period:])
	p.at += int64(n)
	return n, nil
}

// Bodies of 100 MB reach the backend whole, buffered and streamed, with a length
// and without, and never the service that is asked.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) +
		j.guarded("buffered.test", "/cookie", "proxy-body-size: 0", "ssl-redirect: false") +
		j.guarded("streamed.test", "/cookie", "proxy-body-size: 0", "proxy-request-buffering: off") +
		j.guarded("limited.test", "/cookie", "proxy-body-size: 101m", "proxy-request-buffering: off") +
		j.guarded("measured.test", "/cookie", "proxy-body-size: 101m")})
	sum := sha256.New()
	if _, err := io.Copy(sum, &pattern{n: size}); err != nil {
		t.Fatal(err)
	}
	want := hex.EncodeToString(sum.Sum(nil))
	for _, host := range []string{"buffered.test", "streamed.test", "limited.test", "measured.test"} {
		for _, http2 := range []bool{false, true} {
			r := headgatetest.Request{Method: "POST", Host: host, HTTP2: http2, Body: &pattern{n: size}, Header: http.Header{"Cookie": {"session=ok"}}}
			if http2 {
				r.Scheme = "https"
			}
			client := g.NewClient(http2)
			// So much takes its time where the race detector looks at each byte.
			client.Timeout = 3 * time.Minute
			got, err := g.Try(client, r)
			client.CloseIdleConnections()
			if err != nil {
				t.Fatal(err)
			}
			got.WantStatus(t, 200)
			if got.Echo == nil || got.Echo.BodyLength != size || got.Echo.BodySum != want {
				t.Errorf("%s by %s: the backend got %+v", host, got.Proto, got.Echo)
				continue
			}
			// Only what was not read before has no length.
			if streamed := host == "streamed.test" || host == "limited.test"; got.Echo.Chunked != streamed {
				t.Errorf("%s by %s: streamed %v, want %v", host, got.Proto, got.Echo.Chunked, streamed)
			}
		}
	}
	for _, a := range j.take() {
		if a.body != 0 || a.ContentLength != 0 {
			t.Errorf("the service was sent %d bytes", a.body)
		}
	}
	// A limit counts behind the check too.
	over := headgatetest.Request{Method: "POST", Host: "measured.test", Body: &pattern{n: 102 << 20}, Header: http.Header{"Cookie": {"session=ok"}}}
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	if r, err := g.Try(client, over); err == nil {
		r.WantStatus(t, 413)
	}
}

// Who may not pass learns so before a body is sent, and who may is asked for it.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + j.guarded("a.test", "/cookie")})
	ask := func(cookie string) (*bufio.Reader, net.Conn) {
		conn := headgatetest.Dial(t, g.HTTP)
		fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: a.test\r\nCookie: %s\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n", cookie)
		return bufio.NewReader(conn), conn
	}
	answers, _ := ask("none")
	if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 401 ") {
		t.Errorf("refused: %q, %v", line, err)
	}
	answers, conn := ask("session=ok")
	if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Errorf("let pass: %q, %v", line, err)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(answers)
	if err != nil || !strings.Contains(string(rest), "HTTP/1.1 200 ") || !strings.Contains(string(rest), `"BodyLength":5`) {
		t.Errorf("let pass: %q, %v", rest, err)
	}
}

// A backend that takes upgrades and then says back what it hears.
func upgrades(t *testing.T) string {
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("X-User") != "alice" {
			w.WriteHeader(400)
			return
		}
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
		if _, err := io.Copy(conn, buffered); err != nil {
			return
		}
	}))
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("app") + headgatetest.Endpoints("app", upgrades(t)) +
		j.guarded("a.test", "/cookie", "auth-response-headers: X-User")})
	open := func(cookie string) (*bufio.Reader, net.Conn, string) {
		conn := headgatetest.Dial(t, g.HTTP)
		fmt.Fprintf(conn, "GET /x HTTP/1.1\r\nHost: a.test\r\nCookie: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-User: spoof\r\n\r\n", cookie)
		reader := bufio.NewReader(conn)
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return reader, conn, line
	}
	if _, _, line := open("none"); !strings.HasPrefix(line, "HTTP/1.1 401 ") {
		t.Errorf("refused: %q", line)
	}
	reader, conn, line := open("session=ok")
	if !strings.HasPrefix(line, "HTTP/1.1 101 ") {
		t.Fatalf("let pass: %q", line)
	}
	for line != "\r\n" {
		var err error
		if line, err = reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for _, message := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(conn, message); err != nil {
			t.Fatal(err)
		}
		if got, err := reader.ReadString('\n'); err != nil || got != message {
			t.Errorf("sent %q, heard %q, %v", message, got, err)
		}
	}
	for _, a := range j.take() {
		if a.Header.Get("Upgrade") != "" || a.Header.Get("Connection") != "" {
			t.Errorf("the service was asked to upgrade: %v", a.Header)
		}
	}
}
