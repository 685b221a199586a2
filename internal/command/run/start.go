// Package run is the controller: it wires sources, the loop, NGINX and all servers together by
// the flags, and ends them in order.
//
// It knows which part gets what of which other one. What a part does is for its package.
package run

import (
	"os"
	"time"

	"github.com/spf13/cobra"

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
	command := &cobra.Command{
		Use:           "headgate",
		Short:         "An Ingress controller that runs NGINX and applies most changes without a reload",
		Args:          usage.OnlyCommands,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return o.start(command) },
	}
	o.Add(command.Flags())
	build.AddFlag(command)
	usage.ExplainFlagErrors(command)
	command.CompletionOptions.DisableDefaultCmd = true
	return command
}

// LogTimeout is how long the end waits for a reader to take the last lines of the log.
const LogTimeout = time.Second

// start serves until the command's context ends.
func (o program) start(command *cobra.Command) error {
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
	return o.run(command.Context(), log)
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
	return rundir.MakeDefault(instance.Name(o.HTTPPort, o.HTTPSPort))
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
