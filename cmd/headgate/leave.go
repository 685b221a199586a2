package main

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

// stopMargin is how much longer than it was told NGINX may take to end.
const stopMargin = 10 * time.Second

// secondSignal returns a context that ends with the second signal to leave,
// and a function to call when no more are waited for.
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

// stopNGINX lets NGINX finish its connections. NGINX itself ends what is left
// after limit, and what is left when hurry ends is cut, which is an error.
func stopNGINX(hurry context.Context, process *nginx.Process, limit time.Duration, log *slog.Logger) error {
	began := time.Now()
	stopping, cancel := context.WithTimeout(hurry, limit+stopMargin)
	defer cancel()
	err := process.Stop(stopping)
	if err != nil && hurry.Err() != nil {
		// Not wrapped: it is no end that was waited for.
		return fmt.Errorf("a second signal came: %v", err)
	}
	if err == nil {
		log.Info("NGINX has ended", "took", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// pause waits so long, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
