package nginx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

const (
	// startTimeout is the time until a worker of NGINX responds. Most of it is
	// spent in Lua, which copies a dictionary.
	startTimeout = 30 * time.Second
	// freeTimeout bounds the wait for old workers to stop accepting. On a busy machine they need more than a second,
	// and terminating them ends their connections.
	freeTimeout = 3 * time.Second
	// quitAgain is the interval at which they get the signal again: a worker that was about to wait for events when the
	// signal came does not notice it before the next one. Workers of a living master get a message with it.
	quitAgain = 100 * time.Millisecond
	// stableAfter is the time after which the death of a master counts as a first
	// one again.
	stableAfter = 10 * time.Second
	firstDelay  = 100 * time.Millisecond
	longestWait = 5 * time.Second
	// leftPoll is the interval of checks whether old workers have ended.
	leftPoll = 250 * time.Millisecond
)

type master struct {
	cmd *exec.Cmd
	// pid is also the number of its group, even after it has ended.
	pid     int
	started time.Time
	errors  *errorLog
	// ended is closed when the process has been waited for.
	ended chan struct{}
}

// supervise restarts NGINX when it dies, until ctx is done.
func (p *Process) supervise(ctx context.Context, m *master, done chan struct{}) {
	defer close(done)
	quick := 0
	for {
		if !p.watch(ctx, m) {
			return
		}
		p.setMaster(nil)
		p.leave(m.pid)
		lived := time.Since(m.started)
		p.options.Log.Error("NGINX died", "pid", m.pid, "how", m.cmd.ProcessState.String(), "after", lived.Round(time.Millisecond))
		if lived >= stableAfter {
			quick = 0
		}
		for m = nil; m == nil; quick++ {
			// Its workers still serve meanwhile.
			if !sleep(ctx, delay(quick)) {
				return
			}
			m = p.restart(ctx)
		}
	}
}

// watch waits for the master's end and reports whether it ended before ctx was
// done. Meanwhile it waits for workers of earlier masters.
func (p *Process) watch(ctx context.Context, m *master) bool {
	for {
		var look <-chan time.Time
		if p.anyLeft() {
			look = time.After(leftPoll)
		}
		select {
		case <-ctx.Done():
			return false
		case <-m.ended:
			return ctx.Err() == nil
		case <-look:
		}
	}
}

// delay is the pause after a number of deaths in quick succession.
func delay(quick int) time.Duration {
	if quick == 0 {
		return 0
	}
	const doublings = 6 // More would exceed longestWait.
	return min(firstDelay<<min(quick-1, doublings), longestWait)
}

// restart returns nil if it failed.
func (p *Process) restart(ctx context.Context) *master {
	begin := time.Now()
	err := p.clear(ctx)
	var m *master
	if err == nil {
		m, err = p.spawn(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			p.options.Log.Error("restarting NGINX failed", "error", err)
		}
		return nil
	}
	p.setMaster(m)
	p.options.Log.Info("NGINX was restarted", "pid", m.pid, "took", time.Since(begin).Round(time.Millisecond))
	select {
	case <-p.restarted: // The previous one was not received.
	default:
	}
	p.restarted <- m.pid
	return m
}

// clear makes room for a new master: workers without a master are asked to finish
// their connections, which frees the ports at once, and the socket is removed.
// Workers that keep the ports are terminated.
func (p *Process) clear(ctx context.Context) error {
	p.signalLeft(syscall.SIGQUIT)
	if err := p.options.Dir.RemoveSocket(); err != nil {
		return err
	}
	for range freeTimeout / quitAgain {
		if !p.anyLeft() || p.portsFree(ctx, quitAgain) {
			break
		}
		p.signalLeft(syscall.SIGQUIT)
	}
	for _, step := range []struct {
		timeout time.Duration
		then    syscall.Signal
	}{{0, syscall.SIGTERM}, {500 * time.Millisecond, syscall.SIGKILL}, {500 * time.Millisecond, 0}} {
		if !p.anyLeft() || p.portsFree(ctx, step.timeout) {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if step.then != 0 {
			p.options.Log.Warn("old NGINX workers keep the ports; terminating them")
			p.signalLeft(step.then)
		}
	}
	return CheckPorts(p.addresses(), p.options.Flags)
}

func (p *Process) portsFree(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		free := !slices.ContainsFunc(p.addresses(), func(a netip.AddrPort) bool { return errors.Is(bind(a), syscall.EADDRINUSE) })
		if free || !sleep(ctx, poll) {
			return free
		}
	}
}

// spawn starts a master and waits until a worker responds.
func (p *Process) spawn(ctx context.Context) (*master, error) {
	r, w, err := messagePipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.options.Capabilities.Binary, "-p", p.options.Dir.Path(), "-c", p.options.Dir.Conf(), "-e", "stderr")
	cmd.Dir = p.options.Dir.Path()
	cmd.Env = environment()
	cmd.Stderr = w
	p.options.AccessLog.pass(cmd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	if err == nil {
		if err = unblock(w); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	m := &master{
		cmd: cmd, pid: cmd.Process.Pid, started: time.Now(),
		errors: follow(r, p.options.Log), ended: make(chan struct{}),
	}
	go func() {
		defer close(m.ended)
		// cmd.ProcessState has the result.
		_ = cmd.Wait()
	}()
	if err := p.awaitAnswer(ctx, m); err != nil {
		signalGroup(m.pid, syscall.SIGKILL)
		<-m.ended
		return nil, err
	}
	return m, nil
}

func (p *Process) awaitAnswer(ctx context.Context, m *master) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !answers(ctx, p.options.Dir.Socket()) {
		select {
		case <-m.ended:
			return m.whyEnded()
		case <-ctx.Done():
			return fmt.Errorf("no worker responds: %w", ctx.Err())
		case <-time.After(poll):
		}
	}
	// A worker may have responded whose master has just died.
	select {
	case <-m.ended:
		return m.whyEnded()
	default:
		return nil
	}
}

// whyEnded returns the reason of a master that ended without a signal.
func (m *master) whyEnded() error {
	select {
	case <-m.errors.done:
	case <-time.After(time.Second): // A living worker keeps it open.
	}
	if reason := m.errors.reason(); reason != "" {
		return errors.New(reason)
	}
	return fmt.Errorf("NGINX exited immediately: %s", m.cmd.ProcessState)
}

// answers reports whether a worker responds on a unix socket, with any response.
func answers(ctx context.Context, socket string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, err = fmt.Fprint(conn, "GET /v1/state HTTP/1.0\r\n\r\n")
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err == nil
}
