// Pause holds the namespaces of a pod and reaps its orphans. With arguments it
// runs a program, reaps its orphans, and ends with it.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) > 1 {
		code, err := run(os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "pause:", err)
		}
		os.Exit(code)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

func run(args []string) (code int, err error) {
	// The program is killed when the thread that started it ends.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("waiting: %w", err)
		case pid == cmd.Process.Pid && status.Signaled():
			return 1, fmt.Errorf("%s was ended by %v", args[0], status.Signal())
		case pid == cmd.Process.Pid:
			return status.ExitStatus(), nil
		}
	}
}
