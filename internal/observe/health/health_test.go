package health_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/observe/health"
	"github.com/headgate/headgate/internal/test/porttest"
)

// TestAnswer: the check decides, also by taking too long.
func TestAnswer(t *testing.T) {
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, c := range []struct {
		check   func(context.Context) error
		timeout time.Duration
		status  int
		text    string
	}{
		{func(context.Context) error { return nil }, time.Minute, http.StatusOK, "ok"},
		{hangs, time.Millisecond, http.StatusInternalServerError, "not healthy: context deadline exceeded\n"},
	} {
		address := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
		server, err := health.Listen(address, "/alive", c.timeout, c.check, prometheus.NewRegistry(), nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve() }()
		if status, text := get(t, "http://"+address+"/alive"); status != c.status || text != c.text {
			t.Errorf("got %d %q, want %d %q", status, text, c.status, c.text)
		}
		if status, _ := get(t, "http://"+address+"/healthz"); status != http.StatusNotFound {
			t.Errorf("another path answers %d", status)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func get(t *testing.T, url string) (status int, text string) {
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
