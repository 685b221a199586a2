package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/command/pod"
)

func (p *plugin) execCommand() *cobra.Command {
	var (
		pods       podFlags
		stdin, tty bool
	)
	command := &cobra.Command{
		Use:     "exec [flags] -- COMMAND [ARGUMENTS...]",
		Short:   "Run a command in the pod",
		Long:    "Run a command in the pod. The exit status is that of the command.",
		Example: p.examples("A command", "exec -- ls -l /etc/nginx", "A shell", "exec -it -- sh"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("the command to run in the pod is missing")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return p.run(command.Context(), pods, args, stdin, tty)
		},
	}
	f := command.Flags()
	// What follows the command are its own flags.
	f.SetInterspersed(false)
	f.BoolVarP(&stdin, "stdin", "i", false, "Pass the standard input to the command")
	f.BoolVarP(&tty, "tty", "t", false, "Run the command in a terminal, with --stdin")
	p.addPodFlags(command, &pods)
	return command
}

func (p *plugin) sshCommand() *cobra.Command {
	var pods podFlags
	command := &cobra.Command{
		Use:   "ssh",
		Short: "Open a shell in the pod",
		Long:  "Open a shell in the pod: bash, or sh if there is no bash. It is not a connection by SSH.",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			shell := []string{"sh", "-c", "command -v bash >/dev/null && exec bash; exec sh"}
			return p.run(command.Context(), pods, shell, true, true)
		},
	}
	p.addPodFlags(command, &pods)
	return command
}

// run runs a command in the pod with the streams of this program.
func (p *plugin) run(ctx context.Context, pods podFlags, args []string, stdin, tty bool) error {
	s, target, err := p.find(ctx, pods)
	if err != nil {
		return err
	}
	c := pod.Command{Args: args, Out: p.Out, Err: p.ErrOut}
	if stdin {
		c.In = p.In
	}
	if !stdin || !tty {
		return s.exec(ctx, target, c)
	}
	t, err := openTerminal(p.In)
	if err != nil {
		fmt.Fprintln(p.ErrOut, "The command gets no terminal:", err)
		return s.exec(ctx, target, c)
	}
	defer t.close()
	c.TTY, c.Sizes = true, t
	return s.exec(ctx, target, c)
}
