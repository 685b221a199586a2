package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// logFlags are those of kubectl logs.
type logFlags struct {
	follow, timestamps, previous bool
	limitBytes, tail             int64
	sinceTime                    string
	since                        time.Duration
}

func (p *plugin) logsCommand() *cobra.Command {
	var (
		pods podFlags
		o    logFlags
	)
	command := &cobra.Command{
		Use:     "logs",
		Short:   "Show the log of the pod",
		Long:    "Show the log of the pod.",
		Example: p.examples("The last hour", "logs --since 1h", "New lines, until Ctrl-C", "logs -f --tail 0"),
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := contradiction(command.Flags(), "since", "since-time"); err != nil {
				return err
			}
			options, err := o.options()
			if err != nil {
				return err
			}
			return p.logs(command.Context(), pods, options)
		},
	}
	f := command.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "Show new lines until the pod ends")
	f.BoolVar(&o.timestamps, "timestamps", false, "Begin each line with its time")
	f.Int64Var(&o.limitBytes, "limit-bytes", 0, "Maximum number of bytes to show. 0 for no limit")
	f.BoolVarP(&o.previous, "previous", "p", false, "Show the log of the container's previous instance")
	f.Int64Var(&o.tail, "tail", -1, "Number of last lines to show. -1 for all")
	f.StringVar(&o.sinceTime, "since-time", "", "Show lines from this time on (RFC 3339)")
	f.DurationVar(&o.since, "since", 0, "Show lines that are not older than this, such as 5s, 2m or 3h. 0 for all")
	p.addPodFlags(command, &pods)
	return command
}

func (o logFlags) options() (*corev1.PodLogOptions, error) {
	options := &corev1.PodLogOptions{Follow: o.follow, Timestamps: o.timestamps, Previous: o.previous}
	switch {
	case o.limitBytes < 0:
		return nil, fmt.Errorf("invalid value %d of --limit-bytes: must not be negative", o.limitBytes)
	case o.limitBytes > 0:
		options.LimitBytes = &o.limitBytes
	}
	switch {
	case o.tail < -1:
		return nil, fmt.Errorf("invalid value %d of --tail: must be -1 or more", o.tail)
	case o.tail >= 0:
		options.TailLines = &o.tail
	}
	switch {
	case o.since < 0:
		return nil, fmt.Errorf("invalid value %v of --since: must not be negative", o.since)
	case o.since > 0:
		// The API has seconds: the part of one counts as a whole one.
		options.SinceSeconds = new(int64((o.since + time.Second - 1) / time.Second))
	}
	if o.sinceTime != "" {
		from, err := time.Parse(time.RFC3339, o.sinceTime)
		if err != nil {
			return nil, fmt.Errorf("invalid value %q of --since-time: must be a time such as 2006-01-02T15:04:05Z", o.sinceTime)
		}
		options.SinceTime = new(metav1.NewTime(from))
	}
	return options, nil
}

func (p *plugin) logs(ctx context.Context, pods podFlags, options *corev1.PodLogOptions) error {
	s, target, err := p.find(ctx, pods)
	if err != nil {
		return err
	}
	options.Container = target.Container
	stream, err := s.client.CoreV1().Pods(target.Namespace).GetLogs(target.Pod, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	if _, err := io.Copy(p.Out, stream); err != nil {
		return fmt.Errorf("reading the log of pod %s: %w", target.Pod, err)
	}
	return nil
}
