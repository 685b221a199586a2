// Backend runs in the pods of the test cluster: an HTTP echo with a readiness
// check, which ends gracefully. It speaks HTTP/2 without TLS too, and sends back
// the messages of gRPC streams, with its name in the header X-Backend. TCP connections and
// datagrams to another port, and TLS connections to a third one, are sent back too.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
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
	streams := flag.String("streams", ":9000", "address of TCP connections and datagrams")
	secure := flag.String("secure", ":9443", "address of TLS connections")
	grace := flag.Duration("grace", 10*time.Second, "time for requests to end after SIGTERM")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serveStreams(*name, *streams, *secure); err != nil {
		log.Fatal(err)
	}
	if err := serve(ctx, *name, *address, *grace); err != nil {
		log.Fatal(err)
	}
}

// serve answers until ctx is done, then ends when the running requests have.
func serve(ctx context.Context, name, address string, grace time.Duration) error {
	mux := http.NewServeMux()
	mux.Handle("/", withStreams(name, echo.Handler(name)))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := &http.Server{Addr: address, Handler: mux, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
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

// withStreams answers gRPC streams, and leaves all other requests to a handler.
func withStreams(name string, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/grpc" {
			other.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("X-Backend", name)
		w.Header().Set("Trailer", "Grpc-Status")
		status := "0"
		if err := sendBack(w, r.Body); err != nil {
			status = "13" // INTERNAL
		}
		w.Header().Set("Grpc-Status", status)
	})
}

// sendBack sends the header at once, and then each byte as it comes.
func sendBack(w http.ResponseWriter, from io.Reader) error {
	answer := http.NewResponseController(w)
	buffer := make([]byte, 4096)
	for n := 0; ; {
		if _, err := w.Write(buffer[:n]); err != nil {
			return err
		}
		if err := answer.Flush(); err != nil {
			return err
		}
		var err error
		if n, err = from.Read(buffer); n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
