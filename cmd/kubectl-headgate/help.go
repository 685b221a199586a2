package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// examples are pairs of a title and arguments of this program, in the form of kubectl.
func (p *plugin) examples(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "  # %s\n  %s %s\n\n", pairs[i], p.path, pairs[i+1])
	}
	return strings.TrimRight(b.String(), "\n")
}

// setHelp has all commands print help as kubectl does.
func (p *plugin) setHelp(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SetHelpFunc(func(command *cobra.Command, _ []string) {
		out := command.OutOrStdout()
		fmt.Fprintf(out, "%s\n\n", strings.TrimSpace(cmp.Or(command.Long, command.Short)))
		writeUsage(out, command)
	})
	root.SetUsageFunc(func(command *cobra.Command) error {
		writeUsage(command.OutOrStderr(), command)
		return nil
	})
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage", err, command.CommandPath())
	})
}

func writeUsage(out io.Writer, command *cobra.Command) {
	if command.HasExample() {
		fmt.Fprintf(out, "Examples:\n%s\n\n", command.Example)
	}
	if command.HasAvailableSubCommands() {
		fmt.Fprintln(out, "Available Commands:")
		for _, c := range command.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(out, "  %-*s %s\n", command.NamePadding(), c.Name(), c.Short)
			}
		}
		fmt.Fprintln(out)
	}
	if flags := command.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintln(out, "Options:")
		writeFlags(out, flags)
	}
	line := command.UseLine()
	if !strings.Contains(line, "[flags]") && command.HasAvailableFlags() {
		line += " [flags]"
	}
	fmt.Fprintf(out, "Usage:\n  %s\n\n", strings.ReplaceAll(line, "[flags]", "[options]"))
	root := command.Root().CommandPath()
	if command.HasAvailableSubCommands() {
		fmt.Fprintf(out, "Use \"%s <command> --help\" for more information about a given command.\n", command.CommandPath())
	}
	fmt.Fprintf(out, "Use \"%s options\" for a list of global command-line options (applies to all commands).\n", root)
}

// writeFlags lists flags as kubectl does.
func writeFlags(out io.Writer, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		value := f.DefValue
		if f.Value.Type() == "string" {
			value = "'" + value + "'"
		}
		fmt.Fprintf(out, "    %s=%s:\n\t%s\n\n", name, value, f.Usage)
	})
}

// optionsCommand lists the flags of all commands, as `kubectl options`.
func optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the options of all commands",
		Args:  cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			fmt.Fprint(command.OutOrStdout(), "The following options can be passed to any command:\n\n")
			writeFlags(command.OutOrStdout(), command.Root().PersistentFlags())
		},
	}
}
