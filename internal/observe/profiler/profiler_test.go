package profiler_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/observe/profiler"
	"github.com/headgate/headgate/internal/test/porttest"
)

func TestProfiles(t *testing.T) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(porttest.Free(t))))
	server, err := profiler.Listen(address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	for path, want := range map[string]string{
		"/debug/pprof/":                   "goroutine",
		"/debug/pprof/goroutine?debug=1":  "goroutine profile:",
		"/debug/pprof/cmdline":            "profiler.test",
		"/debug/pprof/heap":               "\x1f\x8b",
		"/debug/pprof/trace?seconds=0.01": "go 1.",
	} {
		if status, body := get(t, "http://"+address+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d without %q: %.100q", path, status, want, body)
		}
	}
	for _, path := range []string{"/", "/metrics", "/debug/vars"} {
		if status, _ := get(t, "http://"+address+path); status != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, status)
		}
	}
	if _, err := profiler.Listen(address, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("the port is opened twice")
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
