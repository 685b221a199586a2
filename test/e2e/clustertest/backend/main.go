// Backend runs in the pods of the test cluster: an HTTP echo with a readiness
// check, which ends gracefully.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/headgate/headgate/test/echo"
)

func main() {
	name := flag.String("name", "backend", "the name in its answers")
	address := flag.String("http", ":8080", "address to listen on")
	grace := flag.Duration("grace", 10*time.Second, "time for requests to end after SIGTERM")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, *name, *address, *grace); err != nil {
		log.Fatal(err)
	}
}

// serve answers until ctx is done, then ends when the running requests have.
func serve(ctx context.Context, name, address string, grace time.Duration) error {
	mux := http.NewServeMux()
	mux.Handle("/", echo.Handler(name))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := &http.Server{Addr: address, Handler: mux}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(server.Shutdown(ending), ignoreClosed(<-failed))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
