package dashboard

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// api answers with the path.
var api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "%q", r.URL.Path)
})

// ask sends a request as it is written, to a server that listens on a host.
func ask(t *testing.T, host, head, body string) *http.Response {
	t.Helper()
	handler, err := Handler(host, api)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body)))
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Result()
}

// TestHeaders: every response has them, refusals too.
func TestHeaders(t *testing.T) {
	for head, want := range map[string]string{
		"GET / HTTP/1.1\nHost: localhost":                                       "200 text/html; charset=utf-8 no-cache",
		"GET /app.js HTTP/1.1\nHost: localhost":                                 "200 text/javascript; charset=utf-8 no-cache",
		"GET /style.css HTTP/1.1\nHost: localhost":                              "200 text/css; charset=utf-8 no-cache",
		"GET /icon.svg HTTP/1.1\nHost: localhost":                               "200 image/svg+xml no-cache",
		"HEAD / HTTP/1.1\nHost: localhost":                                      "200 text/html; charset=utf-8 no-cache",
		"GET /v1/status HTTP/1.1\nHost: localhost":                              "200 application/json no-store",
		"GET /v1/explain?url=a HTTP/1.1\nHost: localhost\nSec-Fetch-Site: none": "200 application/json no-store",
		"GET /v1/status HTTP/1.1\nHost: localhost\nSec-Fetch-Site: same-origin": "200 application/json no-store",
		"GET /v1/status HTTP/1.1\nHost: localhost\nSec-Fetch-Site: cross-site":  "403 application/json no-store",
		"GET /v1/status HTTP/1.1\nHost: localhost\nSec-Fetch-Site: same-site":   "403 application/json no-store",
		"GET / HTTP/1.1\nHost: localhost\nSec-Fetch-Site: cross-site":           "200 text/html; charset=utf-8 no-cache",
		"GET /index.html HTTP/1.1\nHost: localhost":                             "404 application/json no-store",
		"GET /../dashboard.go HTTP/1.1\nHost: localhost":                        "404 application/json no-store",
		"GET /static/app.js HTTP/1.1\nHost: localhost":                          "404 application/json no-store",
		"POST /v1/status HTTP/1.1\nHost: localhost":                             "405 application/json no-store",
		"OPTIONS / HTTP/1.1\nHost: localhost":                                   "405 application/json no-store",
		"DELETE / HTTP/1.1\nHost: localhost":                                    "405 application/json no-store",
		"GET / HTTP/1.1\nHost: localhost\nContent-Length: 1":                    "400 application/json no-store",
		"GET /" + strings.Repeat("a", maxURI) + " HTTP/1.1\nHost: localhost":    "414 application/json no-store",
		"GET / HTTP/1.1\nHost: evil.test":                                       "421 application/json no-store",
		"GET / HTTP/1.1\nHost: localhost\nOrigin: http://evil.test":             "200 text/html; charset=utf-8 no-cache",
		"GET /v1/status HTTP/1.1\nHost: localhost:99\nOrigin: http://evil.test": "200 application/json no-store",
	} {
		response := ask(t, "127.0.0.1", head, "x")
		h := response.Header
		if got := fmt.Sprint(response.StatusCode, " ", h.Get("Content-Type"), " ", h.Get("Cache-Control")); got != want {
			t.Errorf("%.80s: %s, want %s", head, got, want)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
		} {
			if h.Get(name) != want {
				t.Errorf("%.80s: %s: %q, want %q", head, name, h.Get(name), want)
			}
		}
	}
	for _, directive := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, directive) {
			t.Errorf("the policy lacks %s", directive)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
}

// TestNames: a request must name this machine.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		listens, names string
		right          bool
	}{
		{"127.0.0.1", "localhost localhost:8000 LOCALHOST 127.0.0.1:8000 127.0.0.2 [::1]:8000 [::ffff:127.0.0.1]", true},
		{"127.0.0.1", "evil.test localhost.evil.test 127.0.0.1.evil.test 10.0.0.1 a.localhost:80 0.0.0.0 [::] [fe80::1]", false},
		{"10.0.0.1", "10.0.0.1:80 localhost 127.0.0.1", true},
		{"10.0.0.1", "10.0.0.2 evil.test", false},
		{"0.0.0.0", "10.0.0.1:80 [2001:db8::1]:80 localhost", true},
		{"0.0.0.0", "evil.test 10.0.0.1.evil.test", false},
		{"::", "10.0.0.1:80 [2001:db8::1]", true},
		{"host.test", "host.test HOST.test:80 localhost 127.0.0.1", true},
		{"host.test", "other.host.test 10.0.0.1", false},
	} {
		for name := range strings.FieldsSeq(c.names) {
			if status := ask(t, c.listens, "GET /v1/status HTTP/1.1\nHost: "+name, "").StatusCode; (status == 200) != c.right || !c.right && status != 421 {
				t.Errorf("%s on %s: status %d", name, c.listens, status)
			}
		}
	}
	if status := ask(t, "127.0.0.1", "GET / HTTP/1.0", "").StatusCode; status != 421 {
		t.Errorf("without a name: status %d", status)
	}
}

// TestNotChanged: a browser need not load what it has.
func TestNotChanged(t *testing.T) {
	tag := ask(t, "localhost", "GET /app.js HTTP/1.1\nHost: localhost", "").Header.Get("ETag")
	if status := ask(t, "localhost", "GET /app.js HTTP/1.1\nHost: localhost\nIf-None-Match: "+tag, "").StatusCode; tag == "" || status != 304 {
		t.Errorf("%q: %d", tag, status)
	}
}

// TestFiles: files name nothing elsewhere, have no scripts or styles inside of HTML, never parse
// HTML, and import files that there are.
func TestFiles(t *testing.T) {
	files, err := readFiles()
	if err != nil {
		t.Fatal(err)
	}
	never := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|eval\(|new Function|localStorage|document\.cookie|<style|<script>| style=| on[a-z]+="|@import|url\(`)
	elsewhere := regexp.MustCompile(`(src|href|from|import) ?[=(]? ?"(https?:)?//`)
	imported := regexp.MustCompile(`from "\.(/[a-z]+\.js)"`)
	total := 0
	for name, f := range files {
		total += len(f.content)
		if found := never.FindString(string(f.content)); found != "" {
			t.Errorf("%s has %s", name, found)
		}
		if found := elsewhere.FindString(string(f.content)); found != "" {
			t.Errorf("%s has %s", name, found)
		}
		for _, match := range imported.FindAllStringSubmatch(string(f.content), -1) {
			if _, found := files[match[1]]; !found {
				t.Errorf("%s imports %s, which does not exist", name, match[1])
			}
		}
	}
	if total > 100<<10 {
		t.Errorf("the files have %d bytes", total)
	}
}

// TestTogether: what has the controller wait is answered one by one, and others go on, however
// many wait for that.
func TestTogether(t *testing.T) {
	const waiting = together + 2
	entered, leave := make(chan string, waiting), make(chan struct{})
	handler, err := Handler("localhost", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- r.URL.Path
		if delays(r.URL.Path) {
			<-leave
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, waiting)
	send := func(path string) {
		request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		request.Host = "localhost"
		handler.ServeHTTP(httptest.NewRecorder(), request)
		done <- struct{}{}
	}
	go send("/v1/explain")
	<-entered
	for i := range waiting - 2 {
		go send([]string{"/v1/explain", "/v1/units"}[i%2])
	}
	go send("/v1/status")
	if got := <-entered; got != "/v1/status" {
		t.Errorf("%s was answered beside an explanation", got)
	}
	<-done
	close(leave)
	for range waiting - 1 {
		<-done
	}
}

// TestListen: the server serves at its address, and closes.
func TestListen(t *testing.T) {
	server, err := Listen("127.0.0.1:0", api, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- server.Serve() }()
	response, err := http.Get("http://" + server.Address() + "/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if string(text) != `"/v1/status"` || err != nil {
		t.Errorf("%s %v", text, err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var none *Server
	if none.Serve() != nil || none.Close() != nil {
		t.Error("without a page there is nothing to serve")
	}
}
