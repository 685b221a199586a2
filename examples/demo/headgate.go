package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// readyWithin limits the time until Headgate is ready.
	readyWithin = 30 * time.Second
	// stopWithin limits the time that Headgate may take to finish requests.
	stopWithin = 30 * time.Second
)

// ports are the TCP ports that Headgate listens on.
type ports struct{ http, https, healthz, dashboard int }

// chooseFree gives each port that is 0 the number of a free one.
func (p *ports) chooseFree() error {
	for _, port := range []*int{&p.http, &p.https, &p.healthz, &p.dashboard} {
		if *port != 0 {
			continue
		}
		listener, err := net.Listen("tcp", ":0")
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		// Open until all are chosen, so that no two are the same.
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// A process is a running Headgate.
type process struct {
	command *exec.Cmd
	// ended is closed when the process has ended; err is its error.
	ended chan struct{}
	err   error
}

// startHeadgate starts the program on the stage's manifests. Its output and
// its log go to out and logs.
func startHeadgate(program string, s *stage, p ports, out, logs io.Writer) (*process, error) {
	command := exec.Command(program,
		"--manifests-dir", s.manifests(),
		"--configmap", "headgate/headgate",
		"--http-port", strconv.Itoa(p.http),
		"--https-port", strconv.Itoa(p.https),
		"--healthz-port", strconv.Itoa(p.healthz),
		"--dashboard-address", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.dashboard)),
		"--enable-metrics",
		"--profiling=false",
		"--default-server-port", "0", "--status-port", "0",
		"--run-dir", filepath.Join(s.folder, "run"))
	command.Stdout, command.Stderr = out, logs
	// In a process group of its own it does not get the terminal's Ctrl-C:
	// the demo ends it, before its backends.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start headgate (`make build` makes it): %w", err)
	}
	started := &process{command: command, ended: make(chan struct{})}
	go func() {
		started.err = command.Wait()
		close(started.ended)
	}()
	return started, nil
}

// waitReady returns when /healthz answers 200.
func (p *process) waitReady(ctx context.Context, at ports) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if healthy(ctx, at) {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("headgate did not start: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("headgate was not ready: %w", ctx.Err())
		case <-poll.C:
		}
	}
}

func healthy(ctx context.Context, at ports) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/healthz", at.healthz), nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// stop ends the process, which finishes its requests first. A failure of the process
// is an error, but not if it ended before.
func (p *process) stop() error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop headgate: %w", err)
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("stop headgate: %w", p.err)
		}
		return nil
	case <-time.After(stopWithin):
		return errors.Join(fmt.Errorf("headgate did not stop within %s and is killed", stopWithin), p.command.Process.Kill())
	}
}
