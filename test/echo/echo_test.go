package echo

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func start(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(Handler("one"))
	t.Cleanup(server.Close)
	return server
}

func TestTextShowsTheRequestAsItCame(t *testing.T) {
	server := start(t)
	request, err := http.NewRequest("POST", server.URL+"/a%2Fb//c?x=1", strings.NewReader("12345"))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "shop.localhost"
	request.Header.Set("X-Test", "yes")
	got := body(t, request)
	for _, want := range []string{
		"backend: one\nrequest: POST /a%2Fb//c?x=1 HTTP/1.1\nHost: shop.localhost\n", "\nX-Test: yes\n", "\nbody: 5 bytes\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
}

func TestEvents(t *testing.T) {
	server := start(t)
	request, err := http.NewRequest("GET", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	if got, want := body(t, request), "data: one 1\n\ndata: one 2\n\ndata: one 3\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func body(t *testing.T, request *http.Request) string {
	t.Helper()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// masked is a frame as a client sends it. The mask is 1, 2, 3, 4.
func masked(first byte, payload []byte) []byte {
	var plain bytes.Buffer
	// Writing to a buffer does not fail.
	_ = writeFrame(&plain, frame{first, payload})
	head := plain.Len() - len(payload)
	sent := plain.Bytes()[:head:head]
	sent[1] |= 0x80
	sent = append(sent, 1, 2, 3, 4)
	for i, b := range payload {
		sent = append(sent, b^byte(i%4+1))
	}
	return sent
}

func TestWebSocketSendsBack(t *testing.T) {
	server := start(t)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Key and answer are the example of RFC 6455, section 1.3.
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	received := bufio.NewReader(conn)
	answer, err := http.ReadResponse(received, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := answer.Header.Get("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="; answer.StatusCode != 101 || got != want {
		t.Fatalf("got %d, accept %q; want 101, %q", answer.StatusCode, got, want)
	}
	long := bytes.Repeat([]byte("0123456789"), 7000)
	for _, c := range []struct {
		sent, want byte
		payload    []byte
	}{
		{0x81, 0x81, []byte("hello")}, {0x82, 0x82, long[:300]}, {0x82, 0x82, long}, {0x89, 0x8a, []byte("ping")}, {0x88, 0x88, nil},
	} {
		if _, err := conn.Write(masked(c.sent, c.payload)); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := writeFrame(&want, frame{c.want, c.payload}); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, want.Len())
		if _, err := io.ReadFull(received, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("sent %x with %d bytes: another answer than expected", c.sent, len(c.payload))
		}
	}
	if _, err := received.ReadByte(); err != io.EOF {
		t.Errorf("after close: %v, want EOF", err)
	}
}
