package run

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/nginx"
)

// stopMargin is the time that NGINX gets to end in addition to its limit.
const stopMargin = 10 * time.Second

// secondSignal returns a context that ends with the second signal to stop, and a
// function to call when no more signals are expected.
func secondSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// outliveReaders has writes to standard output and error fail when their reader has gone.
// By default, such a write ends a program. The signal is not ignored, since NGINX would
// inherit that.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// stopNGINX lets NGINX finish its connections. NGINX itself closes those left after
// limit. When forceStop ends, the others are cut, and stopNGINX returns an error.
func stopNGINX(forceStop context.Context, process *nginx.Process, limit time.Duration, log *slog.Logger) error {
	began := time.Now()
	stopping, cancel := context.WithTimeout(forceStop, limit+stopMargin)
	defer cancel()
	err := process.Stop(stopping)
	if err != nil && forceStop.Err() != nil {
		// Not wrapped: callers must not take it for the regular end.
		return fmt.Errorf("received a second signal: %v", err)
	}
	if err == nil {
		log.Info("NGINX has ended", "took", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
