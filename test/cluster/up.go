package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/headgate/headgate/test/cluster/cgroup"
	"github.com/spf13/cobra"
)

// The files in the state directory that other programs read.
const (
	pidFile     = "pid"          // the process ID, outside, of the first process inside
	controlFile = "control.sock" // see control
)

// settings are the flags of `up`, handed on to `inside`.
type settings struct {
	dir      string
	pause    string
	pods     bool
	endInput bool
}

func (s *settings) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.dir, "dir", "", "state directory, removed at the end but for its log/; the caller may have made it")
	c.Flags().StringVar(&s.pause, "pause", "", "the program pause, if it is not beside this one")
	c.Flags().BoolVar(&s.pods, "pods", true, "run the kubelet, containerd, the scheduler and kube-proxy")
	c.Flags().BoolVar(&s.endInput, "until-eof", false, "end when the standard input ends, as it does when its writer is killed")
}

// upCommand starts the cluster and ends it at a signal. When the cluster can be
// used it prints "ready" on the standard output; progress goes to standard
// error, and each component's log to DIR/log.
func upCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{Use: "up", SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		return up(ctx, s)
	}}
	s.flags(c)
	return c
}

func up(ctx context.Context, s settings) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root, for its namespaces")
	}
	var err error
	if s.dir, err = prepareDir(s.dir); err != nil {
		return err
	}
	if s.pause == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding the program pause: %w", err)
		}
		s.pause = filepath.Join(filepath.Dir(self), "pause")
	}
	if s.endInput {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			// An error ends the cluster like the end of the input does.
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	if !s.pods {
		return errors.Join(runInside(ctx, s, nil), removeState(s.dir))
	}
	// An ordinary user's path, which `su` keeps, lacks these.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		return err
	}
	if err := checkPrograms(); err != nil {
		return err
	}
	trees, err := cgroup.Trees()
	if err != nil {
		return err
	}
	if err := cgroup.RemoveStale(trees); err != nil {
		return err
	}
	group, err := cgroup.New(trees)
	if err != nil {
		return err
	}
	return errors.Join(runInside(ctx, s, group), group.Remove(), removeState(s.dir))
}

// removeState removes all but the logs: the rest is of no use without the
// processes.
func removeState(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != "log" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("removing the cluster's state: %w", err)
	}
	return nil
}

func prepareDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("--dir is missing")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o755); err != nil {
		return "", fmt.Errorf("making the state directory: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, pidFile)); err == nil {
		return "", fmt.Errorf("%s is the state directory of another cluster", dir)
	}
	return dir, nil
}

// checkPrograms says which programs of Debian's are missing.
func checkPrograms() error {
	var missing []string
	for _, name := range []string{"containerd", "ctr", "runc", "nft", "iptables", "conntrack", "mount"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback", "portmap"} {
		if _, err := os.Stat(filepath.Join(pluginDir, plugin)); err != nil {
			missing = append(missing, filepath.Join(pluginDir, plugin))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s; `scripts/install-deps cluster` installs them", strings.Join(missing, ", "))
	}
	return nil
}

// runInside runs `inside` in new namespaces, and in the control group if there
// is one, until ctx is done or it ends by itself.
func runInside(ctx context.Context, s settings, group *cgroup.Group) error {
	cmd := exec.Command("/proc/self/exe", "inside", "--dir="+s.dir, "--pause="+s.pause, "--pods="+strconv.FormatBool(s.pods))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP,
		Pdeathsig: syscall.SIGKILL,
		// A Ctrl-C is for this process, which ends the other and cleans up.
		Setpgid: true,
	}
	if err := startIn(group, cmd); err != nil {
		return fmt.Errorf("starting in namespaces: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	pid := []byte(strconv.Itoa(cmd.Process.Pid) + "\n")
	if err := os.WriteFile(filepath.Join(s.dir, pidFile), pid, 0o644); err != nil {
		return errors.Join(fmt.Errorf("writing the process ID: %w", err), cmd.Process.Kill(), <-ended)
	}
	select {
	case err := <-ended:
		return fmt.Errorf("the cluster ended unexpectedly: %w", err)
	case <-ctx.Done():
		// The kernel kills the namespace's other processes with its first one.
		err := cmd.Process.Kill()
		<-ended
		return err
	}
}

// startIn starts the command as a member of the group. The cgroup namespace's
// root is the group that the parent is in.
func startIn(group *cgroup.Group, cmd *exec.Cmd) error {
	if group == nil {
		return cmd.Start()
	}
	if err := group.Enter(); err != nil {
		return errors.Join(err, group.Leave())
	}
	err := cmd.Start()
	return errors.Join(err, group.Leave())
}
