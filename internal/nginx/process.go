package nginx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Options say how NGINX is run.
type Options struct {
	Capabilities Capabilities
	// Dir is the directory, with nginx.conf and all that it refers to written
	// before Start. The configuration must say "daemon off" and let something
	// answer HTTP on Dir.Socket().
	Dir *RunDir
	// Addresses are the TCP addresses that NGINX listens on.
	Addresses []netip.AddrPort
	// AccessLog may be nil. It is closed after Stop by its owner.
	AccessLog *AccessLog
	// Log takes what NGINX and the supervisor have to say.
	Log *slog.Logger
}

// A Process is an NGINX that is started anew when it dies. Its methods may be
// called at the same time from several goroutines; Start is called once.
type Process struct {
	capabilities Capabilities
	dir          *RunDir
	addresses    []netip.AddrPort
	accessLog    *AccessLog
	log          *slog.Logger
	restarted    chan int

	mu sync.Mutex
	// master is nil while there is none.
	master *master
	// left are the groups of masters that are gone, which workers with open
	// connections may still be in.
	left []int
	// cancel ends supervision; done is closed when it has ended.
	cancel context.CancelFunc
	done   chan struct{}
}

// New returns a Process that has not been started.
func New(o Options) *Process {
	return &Process{
		capabilities: o.Capabilities, dir: o.Dir, addresses: o.Addresses,
		accessLog: o.AccessLog, log: o.Log, restarted: make(chan int, 1),
	}
}

// Capabilities are what its NGINX can do.
func (p *Process) Capabilities() Capabilities { return p.capabilities }

// CheckPorts does what the function of the same name does, unless the ports
// are held by an NGINX that an earlier controller left: Start takes over.
func (p *Process) CheckPorts() error {
	if len(p.dir.orphans()) > 0 {
		return nil
	}
	return CheckPorts(p.addresses)
}

// Start starts NGINX and returns when a worker answers. An NGINX that an
// earlier controller left in the directory is told to finish its connections
// and replaced. From then on NGINX is kept running until Stop. ctx bounds the
// start only.
func (p *Process) Start(ctx context.Context) error {
	if err := adopt(); err != nil {
		return fmt.Errorf("start NGINX: %w", err)
	}
	if err := p.takeOver(ctx); err != nil {
		return fmt.Errorf("start NGINX: %w", err)
	}
	m, err := p.spawn(ctx)
	if err != nil {
		return fmt.Errorf("start NGINX: %w", err)
	}
	supervision, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	p.mu.Lock()
	p.master, p.cancel, p.done = m, cancel, done
	p.mu.Unlock()
	go p.supervise(supervision, m, done)
	return nil
}

// PID is the master's process, 0 while there is none that answers.
func (p *Process) PID() int {
	if m := p.current(); m != nil {
		return m.pid
	}
	return 0
}

// Restarted gives the pid of the master each time that NGINX was started anew
// after it had died. Its memory is empty then. Of several restarts that nobody
// took notice of, only the last is given.
func (p *Process) Restarted() <-chan int { return p.restarted }

// Reload tells the master to read its configuration anew. It returns before
// that is done; a configuration that NGINX refuses changes nothing.
func (p *Process) Reload() error {
	m := p.current()
	if m == nil {
		return errors.New("reload NGINX: it is not running")
	}
	if err := m.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("reload NGINX: %w", err)
	}
	return nil
}

const (
	// forcePatience is how long processes may take to end once they are told
	// not to finish their connections, and again once they are killed.
	forcePatience = time.Second
	// poll is the time between two looks at what can't be waited for.
	poll = time.Millisecond
)

// Stop ends NGINX and returns when no process of it is left. Until ctx is done
// workers finish their connections; what is open then is cut, which is an
// error.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	<-done
	m := p.current()
	if m != nil {
		// It fails where the master has just ended, which is what it is for.
		_ = m.cmd.Process.Signal(syscall.SIGQUIT)
	}
	err := p.end(ctx, m)
	p.mu.Lock()
	p.master = nil
	p.mu.Unlock()
	return errors.Join(err, p.dir.removeSockets())
}

// end waits for all processes to end, and makes them when ctx is done.
func (p *Process) end(ctx context.Context, m *master) error {
	if p.ended(ctx, m) {
		return nil
	}
	p.log.Warn("NGINX did not end in time, its connections are cut")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if m != nil {
			signalGroup(m.pid, signal)
		}
		p.signalLeft(signal)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), forcePatience)
		ended := p.ended(patience, m)
		cancel()
		if ended {
			return fmt.Errorf("stop NGINX: connections were cut: %w", ctx.Err())
		}
	}
	return errors.New("stop NGINX: processes are left that can't be killed")
}

// ended waits until no process is left, or ctx is done.
func (p *Process) ended(ctx context.Context, m *master) bool {
	if m != nil {
		select {
		case <-m.ended:
		case <-ctx.Done():
			return false
		}
		p.leave(m.pid)
	}
	for p.anyLeft() {
		if !sleep(ctx, 10*poll) {
			return false
		}
	}
	return true
}

func (p *Process) current() *master {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.master
}

// leave remembers the group of a master that has ended.
func (p *Process) leave(group int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.left, group) {
		p.left = append(p.left, group)
	}
}

// anyLeft forgets the groups that have no process any more and tells whether
// there are others.
func (p *Process) anyLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = slices.DeleteFunc(p.left, func(group int) bool { return !groupAlive(group) })
	return len(p.left) > 0
}

func (p *Process) signalLeft(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, group := range p.left {
		signalGroup(group, signal)
	}
}

// sleep tells whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// takeOver ends what an earlier controller left.
func (p *Process) takeOver(ctx context.Context) error {
	groups := p.dir.orphans()
	for _, group := range groups {
		p.log.Info("taking over from the NGINX of an earlier controller", "pid", group)
		// A master that finishes its connections would in the end remove the
		// pid file of its successor, and maybe its socket. So it is not asked
		// to; its workers are.
		if master, err := os.FindProcess(group); err == nil {
			_ = master.Kill() // There may be none.
		}
		p.leave(group)
	}
	return p.clear(ctx)
}
