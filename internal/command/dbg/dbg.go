// Package dbg shows what a running controller and its NGINX have, in the form of ingress-nginx's
// program of that name.
//
// It knows the controller's API, the data plane's, and the form of units. Kubernetes, and where
// objects come from, is for others.
package dbg

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/command/instance"
	"github.com/headgate/headgate/internal/command/plaintext"
	"github.com/headgate/headgate/internal/command/usage"
)

// flags are the flags of dbg.
type flags struct{ runDir string }

// Command is dbg, by itself or as a command of headgate, with more commands. Its own up to
// general are those of ingress-nginx's dbg.
func Command(more ...*cobra.Command) *cobra.Command {
	var o flags
	command := group("dbg", "Show what the running controller and NGINX have",
		"Dbg shows what the running controller and NGINX have. It queries the controller of this user in this pod, or on this\n"+
			"machine, and finds it by itself if there is only one. backends, certs, conf and general have the arguments and the\n"+
			"form of output of ingress-nginx's dbg. Private keys are never shown.")
	command.SilenceUsage, command.SilenceErrors = true, true
	command.CompletionOptions.DisableDefaultCmd = true
	usage.ExplainFlagErrors(command)
	f := command.PersistentFlags()
	f.StringVar(&o.runDir, "run-dir", "", "the controller's run directory (default: that of the only controller of this user)")
	f.Int("status-port", 10246, "accepted as in ingress-nginx, without effect: Headgate has unix sockets instead of this port")

	backends := group("backends", "Show backends, in the form of ingress-nginx", "")
	backends.AddCommand(
		o.command("all", "Print all backends as JSON", 0, running.printBackends),
		o.command("list", "List the names of all backends", 0, running.listBackends),
		o.command("get NAME", "Print a backend as JSON, by its name or by NAMESPACE/SERVICE/PORT", 1, running.printBackend),
	)
	certs := group("certs", "Show certificates", "")
	certs.AddCommand(o.command("get HOST", "Print the certificate chain that is served for a server name, in PEM, without the key", 1, running.printCertificate))
	hosts := o.command("hosts", "List the hosts, or show one", 0, running.listHosts)
	hosts.AddCommand(
		o.command("list", "List the names of all hosts", 0, running.listHosts),
		o.command("get NAME", "Print a host as NGINX has it, as JSON", 1, running.printHost),
	)
	command.AddCommand(
		backends, certs, hosts,
		o.command("conf", "Print nginx.conf", 0, running.printConf),
		o.command("general", "Print the settings of all hosts as JSON", 0, running.printGlobals),
		o.command("routes HOST", "List the routes of a host, with what they do", 1, running.listRoutes),
		o.command("profiles", "List the combinations of static settings in use", 0, running.listProfiles),
		o.findings(), o.edges(),
	)
	command.AddCommand(more...)
	return command
}

func (o *flags) findings() *cobra.Command {
	return o.formatted("findings", "List all findings", running.listFindings)
}

func (o *flags) edges() *cobra.Command {
	return o.formatted("edges", "List the edges of a control, with their state", running.listEdges)
}

// formatted is a command whose output has a format.
func (o *flags) formatted(use, short string, show func(running, context.Context, *bytes.Buffer, string) error) *cobra.Command {
	var format string
	command := o.command(use, short, 0, func(r running, ctx context.Context, out *bytes.Buffer, _ string) error {
		if format != "text" && format != "json" {
			return fmt.Errorf("invalid value %q of --output: must be text or json", format)
		}
		return show(r, ctx, out, format)
	})
	command.Flags().StringVarP(&format, "output", "o", "text", "output format: text or json")
	return command
}

// group is a command that only has commands.
func group(name, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Long: long, Args: usage.OnlyCommands,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
}

// command is a command that shows something of the running controller.
func (o *flags) command(use, short string, args int, show func(running, context.Context, *bytes.Buffer, string) error) *cobra.Command {
	takes := cobra.ExactArgs(args)
	if args == 0 {
		takes = usage.OnlyCommands
	}
	return &cobra.Command{
		Use: use, Short: short, Args: takes,
		RunE: func(command *cobra.Command, args []string) error {
			dir, err := instance.Directory(o.runDir)
			if err != nil {
				return err
			}
			r := newRunning(dir, command.ErrOrStderr())
			defer r.dataPlane.CloseIdle()
			var out bytes.Buffer
			if err := show(r, command.Context(), &out, strings.Join(args, "")); err != nil {
				return r.where(command.Context(), err)
			}
			_, err = io.WriteString(command.OutOrStdout(), plaintext.Of(out.String()))
			return err
		},
	}
}
