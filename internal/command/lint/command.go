package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/selection"
	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source/file"
)

// flags are the flags of lint.
type flags struct {
	selection.Flags
	build        release.Build
	path, format string
	ignore       []string
	timeout      time.Duration
}

// errFindings ends lint if there are errors, which are reported already.
var errFindings = usage.ExitStatus{Status: 1}

// Command is lint.
func Command(build release.Build) *cobra.Command {
	o := flags{build: build}
	command := &cobra.Command{
		Use:   "lint -f FOLDER|FILE",
		Short: "Check manifests or a cluster and list findings",
		Long: "Lint reads a folder of manifests, a file of them or a saved dump of a cluster as the controller would, and lists\n" +
			"all findings with file and line. With --kubeconfig or --apiserver-host instead of -f, or without them in a pod, it\n" +
			"reads a cluster, and changes nothing there. The exit status is 1 if a finding is an error, 0 if none is, and 2 if\n" +
			"the arguments are invalid or the input cannot be read. Lint does not resolve names.",
		Args: func(command *cobra.Command, args []string) error { return usage.Wrong(cobra.NoArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	usage.ExplainWrongFlags(command)
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&o.path, "filename", "f", "", "folder or file to read")
	f.StringVarP(&o.format, "output", "o", "text", "output format: text, json or sarif")
	f.StringSliceVar(&o.ignore, "ignore", nil, "code of findings to omit; can be repeated")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "time limit for a cluster")
	o.Flags.Add(f)
	return command
}

func (o flags) run(ctx context.Context, out, summary io.Writer) error {
	write, ok := FormatNamed(o.format)
	if !ok {
		return usage.Wrong(fmt.Errorf("invalid value %q of --output: must be text, json or sarif", o.format))
	}
	ignored := make([]finding.Code, len(o.ignore))
	for i, code := range o.ignore {
		if ignored[i] = finding.Code(code); !Known(ignored[i]) {
			return usage.Wrong(fmt.Errorf("invalid value %q of --ignore: must be one of %s", code, strings.Join(Codes(), ", ")))
		}
	}
	report, err := o.report(ctx, Options{Ignore: ignored, Version: o.build.Version})
	if err != nil {
		return usage.Wrong(err)
	}
	if err := write(out, report); err != nil {
		return usage.Wrong(fmt.Errorf("write the findings: %w", err))
	}
	fmt.Fprintln(summary, report.Summary())
	if report.Errors > 0 {
		return errFindings
	}
	return nil
}

// report is that of the manifests or of the cluster.
func (o flags) report(ctx context.Context, settings Options) (Report, error) {
	if err := o.CheckFile(o.path); err != nil {
		return Report{}, err
	}
	switch {
	case o.path != "":
		return o.reportManifests(settings)
	case !o.IsNamed() && os.Getenv("KUBERNETES_SERVICE_HOST") == "":
		return Report{}, errors.New("-f or --kubeconfig is required: a folder or file of manifests, or a cluster")
	case o.format == "sarif":
		return Report{}, errors.New("--output sarif needs files, which a cluster does not have: use text or json, or -f with a dump")
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	selected, err := o.Snapshot(false)
	if err != nil {
		return Report{}, err
	}
	changes, err := o.ReadCluster(ctx, "headgate-lint/"+o.build.Version, selected.Store)
	if err != nil {
		return Report{}, err
	}
	snap, err := snapshot.Build(changes, selected)
	if err != nil {
		return Report{}, err
	}
	return CheckCluster(changes, snap, settings), nil
}

func (o flags) reportManifests(settings Options) (Report, error) {
	selected, err := o.Snapshot(true)
	if err != nil {
		return Report{}, err
	}
	read, err := file.Read(o.path)
	if err != nil {
		return Report{}, err
	}
	snap, err := snapshot.Build(read.Changes, selected)
	if err != nil {
		return Report{}, err
	}
	here, err := os.Getwd()
	if err != nil {
		return Report{}, err
	}
	settings.Root, settings.Show = o.path, func(path string) string { return shown(path, here) }
	return Check(read, snap, settings), nil
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
