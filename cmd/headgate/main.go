// Command headgate is the Ingress controller: it configures NGINX from a Kubernetes
// cluster or a folder of manifests.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/observe/linequeue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := newProgram(filepath.Base(os.Args[0]))
	ran, err := command.ExecuteContextC(ctx)
	if ran.Flags().Lookup("http-port") != nil && errors.Is(err, context.Canceled) && ctx.Err() != nil {
		// The controller was stopped before its start was complete.
		return
	}
	last := linequeue.New(os.Stderr)
	status := report(last, command.Name(), err)
	last.Flush(logTimeout)
	os.Exit(status)
}

// newProgram returns the command of a program. There are links to Headgate with the names
// of ingress-nginx's programs (LINKS in the Makefile); every other name is that of the
// controller.
func newProgram(name string) *cobra.Command {
	switch name {
	case "dbg":
		return newDebugCommand()
	case certgenName:
		return newCertgenCommand()
	case "wait-shutdown":
		return newWaitShutdownCommand()
	case "nginx-ingress-controller":
		command := newCommand()
		command.Use = name
		return command
	default:
		return newCommand()
	}
}

// logTimeout is how long the end waits for a reader to take the last lines of the log.
const logTimeout = time.Second

// An exitStatus is the exit status of a command other than 0, or 1 with an error.
// Without an error, nothing is printed.
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

// wrongUse is the exit status of commands with invalid arguments.
const wrongUse = 2

// report prints an error of a program and returns the exit status.
func report(out io.Writer, program string, err error) int {
	if err == nil {
		return 0
	}
	if err.Error() != "" {
		fmt.Fprintln(out, program+":", err)
	}
	if e, ok := errors.AsType[exitStatus](err); ok {
		return e.status
	}
	return 1
}
