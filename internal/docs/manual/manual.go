// Package manual writes the reference of a program from its cobra commands: one page of
// Markdown, the same for the same commands.
package manual

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Page is the reference of one program.
type Page struct {
	// Head is the start of the page: its title, and what applies to all commands.
	Head string
	// Root is the program's command.
	Root *cobra.Command
	// RootFlags is a sentence instead of the flags of the root alone, if they are
	// on another page. It also replaces them at a command that has all of them.
	RootFlags string
}

// Markdown is the page: a section for each command, in the order of cobra's help.
func (p Page) Markdown() string {
	var b strings.Builder
	b.WriteString(p.Head)
	p.sections(&b, p.Root)
	return b.String()
}

func (p Page) sections(b *strings.Builder, command *cobra.Command) {
	p.section(b, command)
	for _, c := range command.Commands() {
		if c.IsAvailableCommand() {
			p.sections(b, c)
		}
	}
}

func (p Page) section(b *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", command.CommandPath(), escape(cmp.Or(command.Long, command.Short+".")))
	if command.Runnable() {
		fmt.Fprintf(b, "\n    %s\n", command.UseLine())
	}
	if len(command.Aliases) > 0 {
		fmt.Fprintf(b, "\nOther names: `%s`.\n", strings.Join(command.Aliases, "`, `"))
	}
	if command.Example != "" {
		fmt.Fprintf(b, "\nExample:\n\n%s\n", indent(command.Example))
	}
	subcommands(b, command)
	p.flags(b, command)
}

// subcommands lists the commands below one, with links.
func subcommands(b *strings.Builder, command *cobra.Command) {
	if !command.HasAvailableSubCommands() {
		return
	}
	b.WriteString("\n| Command | |\n| --- | --- |\n")
	for _, c := range command.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(b, "| [`%s`](#%s) | %s |\n", c.Name(), Anchor(c), cell(c.Short))
		}
	}
}

// Anchor is the fragment of the URL of a command's section.
func Anchor(command *cobra.Command) string {
	return strings.ReplaceAll(strings.ToLower(command.CommandPath()), " ", "-")
}

func (p Page) flags(b *strings.Builder, command *cobra.Command) {
	var of *pflag.FlagSet
	if p.RootFlags != "" && hasAll(command, p.Root.LocalNonPersistentFlags()) {
		of = p.Root.LocalNonPersistentFlags()
		fmt.Fprintf(b, "\n%s\n", p.RootFlags)
	}
	var rows strings.Builder
	command.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && (of == nil || of.Lookup(f.Name) == nil) {
			row(&rows, f)
		}
	})
	if rows.Len() > 0 {
		fmt.Fprintf(b, "\n| Flag | Default | Meaning |\n| --- | --- | --- |\n%s", rows.String())
	}
	if above := command.Parent(); above != nil && command.HasAvailableInheritedFlags() {
		fmt.Fprintf(b, "\nThe flags of [`%s`](#%s) that apply to its commands apply too.\n", above.CommandPath(), Anchor(above))
	}
}

func hasAll(command *cobra.Command, flags *pflag.FlagSet) bool {
	all := flags.HasFlags()
	flags.VisitAll(func(f *pflag.Flag) { all = all && command.LocalFlags().Lookup(f.Name) != nil })
	return all
}

func row(b *strings.Builder, f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	name := "`--" + f.Name
	if f.Shorthand != "" && f.ShorthandDeprecated == "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	if value != "" {
		name += " " + value
	}
	byDefault := "–"
	switch f.DefValue {
	case "", "[]", "<nil>":
	default:
		byDefault = "`" + cell(f.DefValue) + "`"
	}
	fmt.Fprintf(b, "| %s` | %s | %s |\n", name, byDefault, cell(usage))
}

// cell is text for a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(escape(text)), " "), "|", `\|`)
}

// escape keeps text from being taken for HTML or emphasis.
func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(text)
}

// indent is a block of code.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		b.WriteString("    " + strings.TrimPrefix(line, "  "))
	}
	return b.String()
}
