package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/lint"
	"github.com/headgate/headgate/internal/snapshot"
	"github.com/headgate/headgate/internal/source/file"
)

// lintOptions are the flags of lint.
type lintOptions struct {
	selection
	path, format string
	ignore       []string
}

// errFindings ends lint if there are errors, which are reported already.
var errFindings = exitStatus{status: 1}

func newLintCommand() *cobra.Command {
	var o lintOptions
	command := &cobra.Command{
		Use:   "lint -f FOLDER|FILE",
		Short: "Check manifests and list findings with file and line",
		Long: "Lint reads a folder of manifests, a file of them or a saved dump of a cluster as the controller would, and lists\n" +
			"all findings. The exit status is 1 if one of them is an error, 0 if none is, and 2 if the arguments are\n" +
			"invalid or the input cannot be read. Lint does not connect to a cluster, and does not resolve names.",
		Args: func(command *cobra.Command, args []string) error { return wrong(cobra.NoArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return wrong(explainFlagError(command.Flags(), err)) })
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&o.path, "filename", "f", "", "folder or file to read")
	f.StringVarP(&o.format, "output", "o", "text", "output format: text, json or sarif")
	f.StringSliceVar(&o.ignore, "ignore", nil, "code of findings to omit; can be repeated")
	o.addSelectionFlags(f)
	return command
}

// wrong is an error in the arguments of a command.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return exitStatus{wrongUse, err}
}

func (o lintOptions) run(out, summary io.Writer) error {
	write, ok := lint.FormatNamed(o.format)
	if !ok {
		return wrong(fmt.Errorf("invalid value %q of --output: must be text, json or sarif", o.format))
	}
	if o.path == "" {
		return wrong(errors.New("-f is required: a folder or file of manifests"))
	}
	ignored := make([]finding.Code, len(o.ignore))
	for i, code := range o.ignore {
		if ignored[i] = finding.Code(code); !lint.Known(ignored[i]) {
			return wrong(fmt.Errorf("invalid value %q of --ignore: must be one of %s", code, strings.Join(lint.Codes(), ", ")))
		}
	}
	settings, err := o.snapshotSettings(true)
	if err != nil {
		return wrong(err)
	}
	read, err := file.Read(o.path)
	if err != nil {
		return wrong(err)
	}
	snap, err := snapshot.Build(read.Changes, settings)
	if err != nil {
		return wrong(err)
	}
	here, err := os.Getwd()
	if err != nil {
		return wrong(err)
	}
	report := lint.Check(read, snap, lint.Options{
		Root: o.path, Ignore: ignored, Version: version,
		Show: func(path string) string { return shown(path, here) },
	})
	if err := write(out, report); err != nil {
		return wrong(fmt.Errorf("write the findings: %w", err))
	}
	fmt.Fprintln(summary, report.Summary())
	if report.Errors > 0 {
		return errFindings
	}
	return nil
}

// shown is a path relative to the current directory, if it is inside of it, with
// slashes on every system.
func shown(path, here string) string {
	if filepath.IsAbs(path) {
		if inside, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(inside) {
			path = inside
		}
	}
	return filepath.ToSlash(filepath.Clean(path))
}
