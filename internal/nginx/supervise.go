package nginx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// startPatience is how long NGINX may take until a worker answers. Most of
	// it is Lua copying a dictionary.
	startPatience = 30 * time.Second
	// calm is how long a master must have lived for its death to be taken as
	// the first one.
	calm        = 10 * time.Second
	firstDelay  = 100 * time.Millisecond
	longestWait = 5 * time.Second
	// leftPoll is the time between two looks whether old workers have ended.
	leftPoll = 250 * time.Millisecond
)

// A master is a started NGINX.
type master struct {
	cmd *exec.Cmd
	// pid is the number of its group as well, and stays so when it has ended.
	pid     int
	started time.Time
	errors  *errorLog
	// ended is closed when the process has been waited for.
	ended chan struct{}
}

// supervise starts NGINX anew when it dies, until ctx is done.
func (p *Process) supervise(ctx context.Context, m *master, done chan struct{}) {
	defer close(done)
	quick := 0
	for {
		if !p.watch(ctx, m) {
			return
		}
		p.mu.Lock()
		p.master = nil
		p.mu.Unlock()
		p.leave(m.pid)
		lived := time.Since(m.started)
		p.log.Error("NGINX died", "pid", m.pid, "how", m.cmd.ProcessState.String(), "after", lived.Round(time.Millisecond))
		if lived >= calm {
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

// watch waits for the master's end and tells whether it came before ctx was
// done. Workers that earlier masters left are waited for on the way.
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

// delay is how long to wait after a number of deaths in quick succession.
func delay(quick int) time.Duration {
	if quick == 0 {
		return 0
	}
	const doublings = 6 // More are beyond longestWait.
	return min(firstDelay<<min(quick-1, doublings), longestWait)
}

// restart returns nil if it could not.
func (p *Process) restart(ctx context.Context) *master {
	begin := time.Now()
	err := p.clear(ctx)
	var m *master
	if err == nil {
		m, err = p.spawn(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			p.log.Error("NGINX can't be started anew", "error", err)
		}
		return nil
	}
	p.mu.Lock()
	p.master = m
	p.mu.Unlock()
	p.log.Info("NGINX was started anew", "pid", m.pid, "took", time.Since(begin).Round(time.Millisecond))
	select {
	case <-p.restarted: // Nobody took the one before.
	default:
	}
	p.restarted <- m.pid
	return m
}

// clear makes room for a new master: workers without a master are told to
// finish their connections, which frees the ports at once, and the sockets are
// removed. Workers that hold on to the ports are ended.
func (p *Process) clear(ctx context.Context) error {
	p.signalLeft(syscall.SIGQUIT)
	if err := p.dir.removeSockets(); err != nil {
		return err
	}
	for _, step := range []struct {
		patience time.Duration
		then     syscall.Signal
	}{{time.Second, syscall.SIGTERM}, {500 * time.Millisecond, syscall.SIGKILL}, {500 * time.Millisecond, 0}} {
		if !p.anyLeft() || p.portsFree(ctx, step.patience) {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if step.then != 0 {
			p.log.Warn("old NGINX workers keep the ports, they are ended")
			p.signalLeft(step.then)
		}
	}
	return CheckPorts(p.addresses)
}

func (p *Process) portsFree(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		free := true
		for _, address := range p.addresses {
			if errors.Is(bind(address), syscall.EADDRINUSE) {
				free = false
			}
		}
		if free || !sleep(ctx, poll) {
			return free
		}
	}
}

// spawn starts a master and waits until a worker answers.
func (p *Process) spawn(ctx context.Context) (*master, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.capabilities.Binary, "-p", p.dir.Path(), "-c", p.dir.Conf(), "-e", "stderr")
	cmd.Dir = p.dir.Path()
	cmd.Env = environment()
	cmd.Stderr = w
	p.accessLog.pass(cmd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	m := &master{
		cmd: cmd, pid: cmd.Process.Pid, started: time.Now(),
		errors: follow(r, p.log), ended: make(chan struct{}),
	}
	go func() {
		defer close(m.ended)
		// How it ended stands in cmd.ProcessState.
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
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for !answers(ctx, p.dir.Socket()) {
		select {
		case <-m.ended:
			return m.whyEnded()
		case <-ctx.Done():
			return fmt.Errorf("no worker answers: %w", ctx.Err())
		case <-time.After(poll):
		}
	}
	// The answer may be a worker's whose master has just died.
	select {
	case <-m.ended:
		return m.whyEnded()
	default:
		return nil
	}
}

// whyEnded is called for a master that has ended by itself.
func (m *master) whyEnded() error {
	select {
	case <-m.errors.done:
	case <-time.After(time.Second): // A worker that lives keeps it open.
	}
	if reason := m.errors.reason(); reason != "" {
		return errors.New(reason)
	}
	return fmt.Errorf("it ended at once: %s", m.cmd.ProcessState)
}

// answers tells whether a worker answers on a unix socket, whatever it says.
func answers(ctx context.Context, socket string) bool {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://headgate/v1/state", nil)
	if err != nil {
		return false
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return true
}
