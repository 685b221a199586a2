// Command headgate is the Ingress controller: it drives NGINX by what a folder
// of manifests says.
package main

import (
	"context"
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
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "headgate:", err)
		os.Exit(1)
	}
}
