// Command kubectl-headgate is a plugin of kubectl, which looks into running instances of
// Headgate: kubectl headgate. With the name kubectl-ingress_nginx it is a plugin with
// the name of ingress-nginx's: kubectl ingress-nginx.
//
// It must build for every system that kubectl runs on. So it imports nothing that needs
// libpcre2, and what only the controller knows it asks in a pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // logins by OpenID Connect, as in kubectl
	"k8s.io/client-go/util/exec"

	"github.com/headgate/headgate/internal/command/pod"
)

// version is set at build time.
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	command := newProgram(os.Args, streams, pod.NewExec)
	err := command.ExecuteContext(ctx)
	if ctx.Err() != nil {
		os.Exit(interrupted)
	}
	os.Exit(report(os.Stderr, err))
}

// interrupted is the exit status after Ctrl-C, as in shells.
const interrupted = 130

// completePrefix is that of the programs that kubectl asks for completions of plugins.
const completePrefix = "kubectl_complete-"

// newProgram returns the command that a program's name and arguments ask for.
func newProgram(args []string, streams genericiooptions.IOStreams, newExec newExec) *cobra.Command {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	rest := args[1:]
	if plugin, ok := strings.CutPrefix(name, completePrefix); ok {
		name, rest = plugin, append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	p := newPlugin(strings.TrimPrefix(name, "kubectl-"), streams, newExec)
	command := p.command()
	command.SetArgs(rest)
	return command
}

// report prints an error as kubectl does, and returns the exit status. A command in a pod
// has printed its errors itself.
func report(out io.Writer, err error) int {
	var remote exec.CodeExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &remote):
		return remote.Code
	}
	fmt.Fprintln(out, "error:", err)
	return 1
}
