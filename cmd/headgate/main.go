// Command headgate is the Ingress controller: it configures NGINX from a Kubernetes
// cluster or a folder of manifests.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/command/certgen"
	"github.com/headgate/headgate/internal/command/dbg"
	"github.com/headgate/headgate/internal/command/explain"
	"github.com/headgate/headgate/internal/command/lint"
	"github.com/headgate/headgate/internal/command/printtemplate"
	"github.com/headgate/headgate/internal/command/rbac"
	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/run"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/command/waitshutdown"
	"github.com/headgate/headgate/internal/observe/linequeue"
)

// version and commit can be set at build time.
var version, commit = "development", ""

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
	status := usage.Report(last, command.Name(), err)
	last.Flush(run.LogTimeout)
	os.Exit(status)
}

// newProgram returns the command of a program. There are links to Headgate with the names
// of ingress-nginx's programs (LINKS in the Makefile); every other name is that of the
// controller.
func newProgram(name string) *cobra.Command {
	build := release.Build{Version: version, Revision: commit}
	switch name {
	case "dbg":
		return dbg.Command(explain.Command(build))
	case certgen.Name:
		return certgen.Command(build)
	case "wait-shutdown":
		return waitshutdown.Command(build)
	case "nginx-ingress-controller":
		command := newController(build)
		command.Use = name
		return command
	default:
		return newController(build)
	}
}

// newController returns the controller, with all other commands below it.
func newController(build release.Build) *cobra.Command {
	command := run.Command(build)
	command.AddCommand(
		certgen.Command(build),
		run.Control(build),
		run.Edge(build),
		dbg.Command(explain.Command(build)),
		explain.Command(build),
		lint.Command(build),
		printtemplate.Command(),
		rbac.Command(),
		waitshutdown.Command(build),
	)
	return command
}
