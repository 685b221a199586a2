package accesslog_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestLongHostileValues: 64 KiB of what is escaped, in a body and in a header of a backend, are in
// lines of JSON as a whole, and break none of those that others have meanwhile.
func TestLongHostileValues(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	// Each character is one of JSON, also where a byte is not UTF-8.
	bad := strings.Repeat("\"\\\x01\x1f\t\x7f\xff}", size/8)
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		// Go does not write such a header itself.
		connection, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprintf(buffer, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\nX-Long: %s\r\n\r\n", bad)
		_ = buffer.Flush()
		_ = connection.Close()
	}))
	l := start(t, headgatetest.Service("long")+headgatetest.Endpoints("long", backend)+
		headgatetest.Ingress("long", "long.test", "/", "long", "client-body-buffer-size: 100k", "proxy-buffer-size: 100k", "proxy-busy-buffers-size: 100k"),
		`log-format-upstream: {"uri": "$request_uri", "agent": "$http_user_agent", "body": "$request_body", "upstream": "$upstream_http_x_long", "sent": "$sent_http_x_long"}`,
		"log-format-escape-json: true")
	const requests = 20
	var wait sync.WaitGroup
	for range requests {
		wait.Go(func() {
			connection := headgatetest.Dial(t, l.HTTP)
			defer connection.Close()
			fmt.Fprintf(connection, "POST /long HTTP/1.1\r\nHost: long.test\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", size, bad)
			if answer, err := io.ReadAll(connection); err != nil || !strings.Contains(string(answer), bad) {
				t.Errorf("%v, %d bytes: %.100q", err, len(answer), answer)
			}
		})
		wait.Go(func() { exchange(t, l.HTTP, "GET /short HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n") })
	}
	wait.Wait()
	if line := l.line("web.test", "/last"); line == "" {
		t.Error("the last request has no line")
	}
	long, short := 0, 0
	for _, line := range linesIn(t, l.file, "/last") {
		var f map[string]string
		if err := json.Unmarshal([]byte(line), &f); err != nil || len(f) != 5 {
			t.Errorf("%v, %d values: %.200q", err, len(f), line)
		}
		switch f["uri"] {
		case "/short":
			short++
		case "/long":
			long++
			for _, name := range []string{"body", "upstream", "sent"} {
				if f[name] != strings.ToValidUTF8(bad, "\uFFFD") {
					t.Errorf("%s: %d bytes: %.100q", name, len(f[name]), f[name])
				}
			}
		}
	}
	if long != requests || short != requests {
		t.Errorf("%d long lines and %d short ones, want %d of each", long, short, requests)
	}
}
