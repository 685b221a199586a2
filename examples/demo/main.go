// Command demo shows Headgate at work without a cluster: it starts small
// backends on loopback, writes the manifests beside this file into a folder
// with the backends' ports and a fresh certificate, starts Headgate on that
// folder and prints commands to try. It runs until SIGINT or SIGTERM.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

type options struct {
	headgate string
	ports    ports
	check    bool
}

func main() {
	var o options
	flag.StringVar(&o.headgate, "headgate", "bin/headgate", "the program to start")
	flag.IntVar(&o.ports.http, "http-port", 0, "port for HTTP; 0: a free one")
	flag.IntVar(&o.ports.https, "https-port", 0, "port for HTTPS; 0: a free one")
	flag.IntVar(&o.ports.healthz, "healthz-port", 0, "port for health and metrics; 0: a free one")
	flag.IntVar(&o.ports.dashboard, "dashboard-port", 0, "port on 127.0.0.1 for the web page; 0: a free one")
	flag.BoolVar(&o.check, "check", false, "run the commands instead of printing them, compare their output, and exit")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if err := o.ports.chooseFree(); err != nil {
		return err
	}
	stage, err := newStage()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()

	// With -check, Headgate's log is shown only if a command fails.
	var log bytes.Buffer
	var out, logs io.Writer = os.Stdout, os.Stderr
	if o.check {
		out, logs = &log, &log
		defer func() {
			if err != nil {
				_, _ = log.WriteTo(os.Stderr)
			}
		}()
	}
	// Responses of another Headgate would be mistaken for those of this one.
	if healthy(ctx, o.ports) {
		return fmt.Errorf("port %d is in use by a server with /healthz; choose other ports: "+
			"make demo HTTP_PORT=9080 HTTPS_PORT=9443 HEALTHZ_PORT=9254 DASHBOARD_PORT=9000", o.ports.healthz)
	}
	headgate, err := startHeadgate(o.headgate, stage, o.ports, out, logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, headgate.stop()) }()
	if err := headgate.waitReady(ctx, o.ports); err != nil {
		return unlessInterrupted(ctx, err)
	}
	if o.check {
		return check(ctx, stage.folder, commands(o.ports))
	}
	announce(os.Stdout, stage.folder, o.ports)
	select {
	case <-headgate.ended:
		return errors.New("headgate ended unexpectedly")
	case <-ctx.Done():
		fmt.Println("\nThe demo ends.")
		return nil
	}
}

// unlessInterrupted is err, or nil when the user ended the demo.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
