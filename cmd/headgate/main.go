// Command headgate is the Ingress controller: it drives NGINX by what a
// Kubernetes cluster or a folder of manifests says.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set when the program is built.
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := newCommand()
	command.Version = version
	err := command.ExecuteContext(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		// Told to leave before there was anything to leave.
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "headgate:", err)
		os.Exit(1)
	}
}
