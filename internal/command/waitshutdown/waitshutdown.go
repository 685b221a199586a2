// Package waitshutdown stops the controller in the same container, and waits until NGINX has
// ended: the program that is the preStop hook of containers.
//
// It knows processes and sockets. What runs in them is for others.
package waitshutdown

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/nginx/rundir"
)

// Command is wait-shutdown, by itself or as a command of headgate.
func Command(build release.Build) *cobra.Command {
	command := &cobra.Command{
		Use:   "wait-shutdown",
		Short: "Stop the controller in the same container, and wait until all connections have ended",
		Long: "Wait-shutdown stops the controller in the same container, and waits until its NGINX has ended, and the connections\n" +
			"that the controller itself relays. It is a preStop hook of the container; afterwards nothing is served.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return waitShutdown(command.Context()) },
	}
	build.AddFlag(command)
	usage.ExplainFlagErrors(command)
	return command
}

// shutdownPoll is the interval of checks for running processes.
const shutdownPoll = 50 * time.Millisecond

func waitShutdown(ctx context.Context) error {
	all, err := processes()
	if err != nil {
		return err
	}
	controllers := slices.DeleteFunc(all, func(p process) bool { return !p.isController() })
	if len(controllers) == 0 {
		return errors.New("no controller runs in this container")
	}
	sockets, err := socketsOf(controllers)
	if err != nil {
		return err
	}
	for _, c := range controllers {
		if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", c.pid, err)
		}
	}
	for {
		all, err := processes()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(p process) bool { return p.isChildOf(controllers) }) && !slices.ContainsFunc(sockets, isListening) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(shutdownPoll):
		}
	}
}

// socketsOf are the sockets of the controllers' APIs. A controller closes its own when NGINX
// has ended, and what it does itself: relaying connections, and the leader's last work.
func socketsOf(controllers []process) ([]string, error) {
	dirs, err := rundir.Running()
	if err != nil {
		return nil, err
	}
	var sockets []string
	for _, dir := range dirs {
		socket := rundir.ControllerSocket(dir)
		listener, err := listenerOf(socket)
		if err == nil && slices.ContainsFunc(controllers, func(c process) bool { return c.pid == listener }) {
			sockets = append(sockets, socket)
		}
	}
	return sockets, nil
}

// listenerOf is the process that listens on a unix socket.
func listenerOf(socket string) (pid int, err error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}

func isListening(socket string) bool {
	_, err := listenerOf(socket)
	return err == nil
}

// A process is the public information of the kernel about a process.
type process struct {
	pid, parent int
	// name is the name of the program, cut to 15 bytes.
	name string
	// argument is its first argument, empty if it has none.
	argument string
}

// isController recognizes the program by its own name, and by the one in Deployments
// of ingress-nginx. With another name than that of a part as its first argument, it is another command.
func (p process) isController() bool {
	isProgram := p.name == "headgate" || p.name == "nginx-ingress-c"
	isPart := p.argument == "control" || p.argument == "edge"
	return isProgram && (p.argument == "" || strings.HasPrefix(p.argument, "-") || isPart)
}

// isChildOf reports whether one of the controllers is the parent of the process.
// Controllers start only NGINX, and adopt parts of NGINX whose parent dies.
func (p process) isChildOf(controllers []process) bool {
	return slices.ContainsFunc(controllers, func(c process) bool { return c.pid == p.parent })
}

// processes are all visible processes.
func processes() ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("/proc shows no processes")
	}
	var all []process
	for _, file := range files {
		// A process that can't be read or parsed has just ended.
		if text, err := os.ReadFile(file); err == nil {
			if p, ok := parseProcess(text); ok {
				p.argument = firstArgument(filepath.Dir(file))
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// parseProcess parses "PID (NAME) STATE PARENT …", where NAME may contain anything.
func parseProcess(stat []byte) (process, bool) {
	before, after := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if before < 0 || after < before {
		return process{}, false
	}
	p := process{name: string(stat[before+1 : after])}
	var state string
	_, errPID := fmt.Sscan(string(stat[:before]), &p.pid)
	_, errParent := fmt.Sscan(string(stat[after+1:]), &state, &p.parent)
	return p, errPID == nil && errParent == nil
}

// firstArgument reads it from the folder of a process. Its arguments end in zero bytes.
func firstArgument(folder string) string {
	text, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return ""
	}
	_, arguments, _ := strings.Cut(string(text), "\x00")
	first, _, _ := strings.Cut(arguments, "\x00")
	return first
}
