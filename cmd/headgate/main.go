// Command headgate is the Ingress controller: it drives NGINX by what a
// Kubernetes cluster or a folder of manifests says.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	os.Exit(report(os.Stderr, err))
}

// An exitStatus is how a command ends where that is neither 0 nor an error with
// status 1. Without an error there is nothing to say.
type exitStatus struct {
	status int
	err    error
}

func (e exitStatus) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exitStatus) Unwrap() error { return e.err }

// wrongUse is the status of commands that were called wrongly.
const wrongUse = 2

// report says what went wrong and gives the exit status.
func report(out io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if err.Error() != "" {
		fmt.Fprintln(out, "headgate:", err)
	}
	if e, ok := errors.AsType[exitStatus](err); ok {
		return e.status
	}
	return 1
}
