// Package run is the controller: it wires sources, the loop, NGINX and all servers together by
// the flags, and ends them in order.
//
// It knows which part gets what of which other one. What a part does is for its package.
package run

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/instance"
	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/observe/linequeue"
)

// A program is a controller that is to run.
type program struct {
	option.Options
	build release.Build
	log   *linequeue.Writer
	// timing is the result of --sync-rate-limit.
	timing edge.Timing
}

// Command is the controller.
func Command(build release.Build) *cobra.Command {
	o := program{build: build}
	command := o.command((*option.Options).Add, program.run)
	command.Use, command.Short = "headgate", "An Ingress controller that runs NGINX and applies most changes without a reload"
	command.Args = usage.OnlyCommands
	return command
}

// Control is the controller without NGINX: edges serve what it builds.
func Control(build release.Build) *cobra.Command {
	o := program{build: build}
	command := o.command((*option.Options).AddControl, program.run)
	command.Use, command.Short = "control", "Run the controller without NGINX: edges serve what it reads from the cluster"
	command.Long = command.Short + ".\n\nAll flags of headgate are flags of a control, too."
	return command
}

// Edge runs NGINX for a control.
func Edge(build release.Build) *cobra.Command {
	o := program{build: build}
	command := o.command((*option.Options).AddEdge, program.runEdge)
	command.Use, command.Short = "edge", "Run NGINX for a control, without access to the cluster"
	command.Long = command.Short + ".\n\nAll flags of headgate are flags of an edge, too. Those about the cluster have no effect."
	return command
}

// command is one that serves with flags.
func (o *program) command(add func(*option.Options, *pflag.FlagSet), run func(program, context.Context, *slog.Logger) error) *cobra.Command {
	command := &cobra.Command{
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return o.start(command, run) },
	}
	add(&o.Options, command.Flags())
	o.build.AddFlag(command)
	usage.ExplainFlagErrors(command)
	command.CompletionOptions.DisableDefaultCmd = true
	return command
}

// LogTimeout is how long the end waits for a reader to take the last lines of the log.
const LogTimeout = time.Second

// start serves until the command's context ends.
func (o program) start(command *cobra.Command, run func(program, context.Context, *slog.Logger) error) error {
	f := command.Flags()
	if !f.Changed("post-shutdown-grace-period") && o.ManifestsDir != "" {
		// A folder has no load balancer that must notice the end.
		o.PostShutdownGracePeriod = 0
	}
	if err := o.Check(); err != nil {
		return err
	}
	o.log = linequeue.New(os.Stderr)
	defer o.log.Flush(LogTimeout)
	files, err := o.OpenLogFiles(command.Root().Name(), os.TempDir())
	if err != nil {
		return err
	}
	// The last lines are lost if the disk does not take them.
	defer files.Close(LogTimeout)
	log := o.Logger(o.log, files)
	option.WarnWithoutEffect(f, log)
	option.WarnLogFlags(f, log)
	o.Objects.ReservedPorts = option.ReservedPorts(f)
	o.timing = o.reloadTiming(f.Changed("sync-rate-limit"))
	return run(o, command.Context(), log)
}

// reloadTiming is the timing of reloads, with --sync-rate-limit if it is set.
func (o program) reloadTiming(limited bool) edge.Timing {
	timing := edge.DefaultTiming()
	timing.CommonProfiles = true
	if limited {
		timing.ReloadInterval = time.Duration(float64(time.Second) / float64(o.SyncRateLimit))
	}
	return timing
}

// makeRunDirectory is the directory that NGINX runs in. The default one is created.
func (o program) makeRunDirectory() (string, error) {
	if o.RunDir != "" {
		return o.RunDir, nil
	}
	if o.IsControl() {
		return rundir.MakeDefault("headgate-control")
	}
	return rundir.MakeDefault(instance.Name(o.HTTPPort, o.HTTPSPort))
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
