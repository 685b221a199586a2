package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// How long a process may take to be ready, and to end.
const (
	startTimeout = 3 * time.Minute
	endTimeout   = 10 * time.Second
)

// A process is a child of the benchmark.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	// inside: it is in the cluster's network.
	inside bool
}

// start runs a program whose errors go to a file named for it.
func (s *stage) start(name, program string, args ...string) (*process, error) {
	cmd := exec.Command(program, args...)
	// Ctrl-C is for the benchmark, which ends its children in good order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return s.startCommand(name, cmd)
}

func (s *stage) startCommand(name string, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, log: filepath.Join(s.dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// Standard output, which is /dev/null, gets the access log.
	p.cmd.Stderr = log
	p.cmd.Env = append(p.cmd.Environ(), s.environment...)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		// How it ended is seen by what it no longer does.
		_ = p.cmd.Wait()
	}()
	s.processes = append(s.processes, p)
	return p, nil
}

// stop ends the process, by force if it does not end by itself. A second call
// does nothing.
func (p *process) stop() {
	select {
	case <-p.done:
		return
	default:
	}
	// This fails if the process has just ended, which is fine.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(endTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// until waits for something to become true of a process.
func (p *process) until(ctx context.Context, what string, ready func() bool) error {
	deadline := time.After(startTimeout)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return fmt.Errorf("it ended instead of %s: %s", what, p.lastWords())
		case <-deadline:
			return fmt.Errorf("waited %v for it to be %s: %s", startTimeout, what, p.lastWords())
		case <-tick.C:
		}
	}
	return nil
}

func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(text[max(0, len(text)-most):])
}

// listens reports whether a local port accepts connections.
func listens(port int) bool {
	conn, err := net.Dial("tcp", local(port))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePorts returns different unused ports of five digits, below those that the kernel uses
// for connections: the connection of another program could have one of these before it is
// listened on. Nor do tests get them, or other benchmarks, until this one ends: see porttest.
func freePorts(n int) ([]int, error) {
	const lowest, many = 10000, 20000
	var ports []int
	for try := 0; len(ports) < n; try++ {
		if try == 100*n {
			return nil, errors.New("no free ports")
		}
		port := lowest + rand.IntN(many)
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		if syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("@headgate-port-%d", port)}) != nil {
			syscall.Close(fd)
			continue
		}
		listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
		if err != nil {
			syscall.Close(fd)
			continue
		}
		listener.Close()
		// Its mark stays until this process ends.
		ports = append(ports, port)
	}
	return ports, nil
}
