package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/nginx"
)

// version and commit can be set at build time. Without that, the commit is the one that
// Go found.
var version, commit = "development", ""

const repository = "https://github.com/headgate/headgate"

// addVersionFlag adds a flag with which a command prints what it is, and ends.
func addVersionFlag(command *cobra.Command) {
	var asked bool
	command.Flags().BoolVar(&asked, "version", false, "print release, commit, repository and the version of NGINX, and exit")
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		if asked {
			return printVersion(command.Context(), command.OutOrStdout())
		}
		return run(command, args)
	}
}

// printVersion has the form of ingress-nginx, which scripts read.
func printVersion(ctx context.Context, out io.Writer) error {
	server, err := nginx.Version(ctx)
	if err != nil {
		server = "unknown: " + err.Error()
	}
	line := strings.Repeat("-", 79)
	_, err = fmt.Fprintf(out, "%s\nHeadgate Ingress controller\n  Release:       %s\n  Build:         %s\n  Repository:    %s\n  nginx version: %s\n\n%s\n",
		line, version, builtFrom(), repository, server, line)
	return err
}

// builtFrom is the commit, if it is known.
func builtFrom() string {
	if commit != "" {
		return commit
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
