package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stopLimit bounds the time from SIGSTOP to the last thread's stop.
	stopLimit = 10 * time.Second
	// cldStopped is CLD_STOPPED of siginfo_t: a child was stopped.
	cldStopped = 5
)

// A component is one process of the cluster, which can be started again. Its
// methods are not for concurrent use.
type component struct {
	name string
	path string
	args []string
	log  string // the file that its output is appended to
	// ready checks once whether it works.
	ready func(context.Context) error

	died chan<- error // gets an error when it ends without a request
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	stop chan struct{} // closed to stop it
}

// start starts the process and does not wait until it is ready.
func (c *component) start() error {
	if c.cmd != nil {
		return fmt.Errorf("%s runs already", c.name)
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}
	defer log.Close()
	cmd := exec.Command(c.path, c.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}
	done, stop := make(chan struct{}), make(chan struct{})
	c.cmd, c.done, c.stop = cmd, done, stop
	go func() {
		err := cmd.Wait()
		close(done)
		select {
		case <-stop:
		default:
			c.died <- fmt.Errorf("%s ended unexpectedly (%v); its log ends:\n%s", c.name, err, tail(c.log))
		}
	}()
	return nil
}

// end sends the signal and waits; after five seconds it kills.
func (c *component) end(signal syscall.Signal) error {
	if c.cmd == nil {
		return fmt.Errorf("%s does not run", c.name)
	}
	close(c.stop)
	if err := c.signal(signal); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-time.After(5 * time.Second):
		if err := c.signal(syscall.SIGKILL); err != nil {
			return err
		}
		<-c.done
	}
	c.cmd = nil
	return nil
}

func (c *component) signal(signal syscall.Signal) error {
	if c.cmd == nil {
		return fmt.Errorf("%s does not run", c.name)
	}
	if err := c.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("sending %v to %s: %w", signal, c.name, err)
	}
	return nil
}

// pause freezes the process, and returns when none of its threads runs any more.
func (c *component) pause() error {
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// Each thread stops when it is next scheduled, which may take long on a busy
	// machine. The kernel reports the stop after the last one.
	limit := time.Now().Add(stopLimit)
	for {
		var stopped unix.Siginfo
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &stopped, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil {
			return fmt.Errorf("waiting until %s is stopped: %w", c.name, err)
		}
		if stopped.Code == cldStopped {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%s still runs %v after SIGSTOP", c.name, stopLimit)
		}
		time.Sleep(time.Millisecond)
	}
}

// waitReady waits until the component is ready or has ended, or ctx is done.
func (c *component) waitReady(ctx context.Context) error {
	for {
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("%s ended before it was ready; its log ends:\n%s", c.name, tail(c.log))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w; its log ends:\n%s", c.name, ctx.Err(), err, tail(c.log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tail returns the last lines of a log that report errors, or its last lines if
// there are no errors.
func tail(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	// klog begins a line with the first letter of its severity.
	bad := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return !strings.HasPrefix(line, "E") && !strings.HasPrefix(line, "F") && !strings.Contains(line, "rror")
	})
	if len(bad) > 0 {
		lines = bad
	}
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
