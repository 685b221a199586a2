package nginx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/nginx/rundir"
)

// Options are how NGINX is run.
type Options struct {
	Capabilities Capabilities
	// Dir is the directory. nginx.conf and all files that it refers to must be
	// written before Start. The configuration must contain "daemon off" and serve
	// HTTP on Dir.Socket().
	Dir *rundir.Dir
	// Addresses are the TCP addresses that NGINX listens on, see SetAddresses.
	Addresses []netip.AddrPort
	// Flags are the flags that set their ports, for errors.
	Flags map[uint16]string
	// AccessLog may be nil. Its owner closes it after Stop.
	AccessLog *AccessLog
	// Log gets the messages of NGINX and the supervisor.
	Log *slog.Logger
}

// A Process is an NGINX that is restarted when it dies. Several goroutines may call
// its methods at the same time. Start must be called once.
type Process struct {
	options   Options
	restarted chan int
	// listen listens on some of the addresses too, see Share. It may be nil.
	listen func() ([]netip.AddrPort, error)
	tried  tried

	mu sync.Mutex
	// master is nil while there is none.
	master *master
	// left are the groups of earlier masters that may still have workers with open
	// connections.
	left []int
	// cancel ends supervision; done is closed when it has ended.
	cancel context.CancelFunc
	done   chan struct{}
}

// New returns a Process that has not been started.
func New(o Options) *Process { return &Process{options: o, restarted: make(chan int, 1)} }

// Capabilities returns the capabilities of NGINX.
func (p *Process) Capabilities() Capabilities { return p.options.Capabilities }

// SetAddresses sets the TCP addresses that NGINX listens on from its next start on, without those that are
// shared, see Share.
func (p *Process) SetAddresses(addresses []netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.options.Addresses = addresses
}

func (p *Process) addresses() []netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.options.Addresses
}

// Start starts NGINX and returns when a worker responds. If an earlier controller
// left an NGINX in the directory, it is asked to finish its connections, and
// replaced. NGINX is kept running until Stop. ctx limits the start only.
func (p *Process) Start(ctx context.Context) error {
	err := adopt()
	if err == nil {
		err = p.takeOver(ctx)
	}
	if err == nil {
		err = p.share()
	}
	var m *master
	if err == nil {
		m, err = p.spawn(ctx)
	}
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

// Share has Start call listen once all addresses are free, and before NGINX listens, to
// listen on some of them too. It returns which. It must be called before Start.
func (p *Process) Share(listen func() ([]netip.AddrPort, error)) { p.listen = listen }

// share calls listen. The addresses can't be bound alone any more, so they are not checked
// again.
func (p *Process) share() error {
	if p.listen == nil {
		return nil
	}
	shared, err := p.listen()
	p.SetAddresses(slices.DeleteFunc(slices.Clone(p.addresses()), func(a netip.AddrPort) bool { return slices.Contains(shared, a) }))
	return err
}

// PID is the process ID of the master, or 0 if none is ready.
func (p *Process) PID() int {
	if m := p.current(); m != nil {
		return m.pid
	}
	return 0
}

// Restarted delivers the process ID of the master each time that NGINX died and was
// restarted, with empty memory. Of several restarts that were not received, only
// the last one is delivered.
func (p *Process) Restarted() <-chan int { return p.restarted }

// Reload makes the master read its configuration again. It returns before that is
// done. If NGINX rejects the configuration, nothing changes.
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
	// forceTimeout is the time for processes to end after the signal to terminate
	// immediately, and again after they were killed.
	forceTimeout = time.Second
	// poll is the interval of checks for events without notification.
	poll = time.Millisecond
)

// Stop stops NGINX and returns when no process of it is left. Until ctx is done,
// workers finish their connections. Then open connections are cut, and Stop returns
// an error.
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
		// This fails if the master has just ended, which is fine.
		_ = m.cmd.Process.Signal(syscall.SIGQUIT)
	}
	err := p.end(ctx, m)
	p.setMaster(nil)
	return errors.Join(err, p.options.Dir.RemoveSocket())
}

// end waits for all processes to end, and forces them to when ctx is done.
func (p *Process) end(ctx context.Context, m *master) error {
	if p.ended(ctx, m) {
		return nil
	}
	p.options.Log.Warn("NGINX did not end in time; cutting its connections")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if m != nil {
			signalGroup(m.pid, signal)
		}
		p.signalLeft(signal)
		forced, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceTimeout)
		ended := p.ended(forced, m)
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

func (p *Process) setMaster(m *master) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.master = m
}

// leave remembers the group of a master that has ended.
func (p *Process) leave(group int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.left, group) {
		p.left = append(p.left, group)
	}
}

// anyLeft forgets the groups without processes, and reports whether others are
// left.
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

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// takeOver ends the NGINX of an earlier controller.
func (p *Process) takeOver(ctx context.Context) error {
	for _, group := range orphans(p.options.Dir.Socket()) {
		p.options.Log.Info("taking over from the NGINX of an earlier controller", "pid", group)
		// At its end, a master that finishes its connections would remove the pid
		// file of its successor, and maybe its socket. So it is killed, and its
		// workers are asked to finish.
		_ = syscall.Kill(group, syscall.SIGKILL) // There may be none.
		p.leave(group)
	}
	return p.clear(ctx)
}
