package health_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/health"
	"github.com/headgate/headgate/internal/porttest"
)

// A check that takes too long is a failure.
func TestTimeout(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	server, err := health.Listen(address, "/healthz", time.Millisecond, hangs, prometheus.NewRegistry(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	response, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusInternalServerError || !strings.Contains(string(text), context.DeadlineExceeded.Error()) {
		t.Errorf("%s: %q, %v", response.Status, text, err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
