// Package release says which Headgate a program is: its release and commit, and the NGINX that
// it runs.
//
// It knows what was set at build time. Who prints it, is for the commands.
package release

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/nginx"
)

// A Build is what a program was built from.
type Build struct {
	// Version is that of the release.
	Version string
	// Revision is the commit, if it was set at build time.
	Revision string
}

// Repository has the source code.
const Repository = "https://github.com/headgate/headgate"

// AddFlag adds a flag with which a command prints what it is, and ends.
func (b Build) AddFlag(command *cobra.Command) {
	var asked bool
	command.Flags().BoolVar(&asked, "version", false, "print release, commit, repository and the version of NGINX, and exit")
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		if asked {
			return b.print(command.Context(), command.OutOrStdout())
		}
		return run(command, args)
	}
}

// print has the form of ingress-nginx, which scripts read.
func (b Build) print(ctx context.Context, out io.Writer) error {
	server, err := nginx.Version(ctx)
	if err != nil {
		server = "unknown: " + err.Error()
	}
	line := strings.Repeat("-", 79)
	_, err = fmt.Fprintf(out, "%s\nHeadgate Ingress controller\n  Release:       %s\n  Build:         %s\n  Repository:    %s\n  nginx version: %s\n\n%s\n",
		line, b.Version, b.Commit(), Repository, server, line)
	return err
}

// Commit is the revision, otherwise the one that Go found at build time.
func (b Build) Commit() string {
	if b.Revision != "" {
		return b.Revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return revision + changed
}
