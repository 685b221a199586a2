package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/test/cluster/cgroup"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// startLimit bounds the time from the first component to a usable cluster: some
// seconds, or minutes on an emulated machine. A component that dies ends the wait.
const startLimit = 5 * time.Minute

// insideCommand is the first process of the cluster's namespaces, which `up`
// makes. It sets them up, starts the components, serves the control socket, and
// ends when a component ends unexpectedly.
func insideCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{Use: "inside", Hidden: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
		if os.Getpid() != 1 {
			return fmt.Errorf("`inside` is started by `up`, in namespaces of its own")
		}
		return inside(context.Background(), s)
	}}
	s.flags(c)
	return c
}

func inside(ctx context.Context, s settings) error {
	began := time.Now()
	if err := setupNamespaces(s); err != nil {
		return err
	}
	keys, err := newPKI(filepath.Join(s.dir, "pki"))
	if err != nil {
		return err
	}
	cluster := newCluster(s, keys, func(what string) {
		fmt.Fprintf(os.Stderr, "%6.2f s  %s\n", time.Since(began).Seconds(), what)
	})
	starting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := cluster.start(starting); err != nil {
		return err
	}
	if err := serveControl(filepath.Join(s.dir, controlFile), cluster); err != nil {
		return err
	}
	fmt.Println("ready")
	return <-cluster.died
}

func setupNamespaces(s settings) error {
	var trees []cgroup.Tree
	if s.pods {
		var err error
		// Before the namespace's own /proc, so that the paths are the machine's.
		if trees, err = cgroup.Trees(); err != nil {
			return err
		}
	}
	if err := setupMounts(s.dir); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(nodeName)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if s.pods {
		if err := cgroup.Mount(trees); err != nil {
			return err
		}
		if err := hideSettings(); err != nil {
			return err
		}
	}
	return setupNetwork()
}
