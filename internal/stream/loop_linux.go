package stream

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket is called by its loop when something happened to it.
type socket interface {
	// ready must not wait. The events are those of epoll.
	ready(events uint32)
}

// eventBatch is how many events a loop takes at once.
const eventBatch = 128

// A loop waits for what happens to many sockets, and calls them one after the other. They
// need neither goroutines nor memory while nothing happens.
//
// It has an epoll of its own, which is one file for Go's poller: the loop is a goroutine
// that waits for that file, and never a thread that waits.
type loop struct {
	file *os.File
	fd   int
	wait syscall.RawConn

	pipes   *pipes
	mu      sync.Mutex
	sockets map[int32]socket
	// spare are UDP sockets by their families.
	spare map[uint16][]int

	// These are of the goroutine alone. The buffer is for what a socket reads, and now is the
	// time of the events.
	buffer [maxDatagram]byte
	now    time.Time
	events [eventBatch]unix.EpollEvent
	called [eventBatch]socket
	again  []socket
}

func newLoop(shared *pipes) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	// Go's poller takes only files that never wait.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	l := &loop{file: os.NewFile(uintptr(fd), "epoll"), fd: fd, pipes: shared, sockets: map[int32]socket{}, spare: map[uint16][]int{}}
	if l.wait, err = l.file.SyscallConn(); err != nil {
		l.file.Close()
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	go func() {
		// It ends when the file is closed.
		_ = l.wait.Read(l.run)
	}()
	return l, nil
}

// close ends the loop, which must have no sockets any more.
func (l *loop) close() {
	l.closeSpare()
	l.file.Close()
}

// run calls sockets until nothing happens. It reports false: that the loop must wait.
func (l *loop) run(epoll uintptr) bool {
	for {
		// It fails only when it is closed.
		n, _ := call(unix.SYS_EPOLL_PWAIT, int(epoll), unsafe.Pointer(&l.events), eventBatch, 0)
		if n == 0 && len(l.again) == 0 {
			return false
		}
		l.now = time.Now()
		l.mu.Lock()
		for i := range n {
			l.called[i] = l.sockets[l.events[i].Fd]
		}
		l.mu.Unlock()
		again := l.again
		l.again = nil
		for i, s := range l.called[:n] {
			// One that was removed meanwhile has no events.
			if s != nil {
				s.ready(l.events[i].Events)
			}
		}
		clear(l.called[:n])
		for _, s := range again {
			s.ready(unix.EPOLLIN)
		}
		// Others have their turn, even if something happens all the time.
		runtime.Gosched()
	}
}

// later calls a socket again, after the others. It is for sockets that were called.
func (l *loop) later(s socket) { l.again = append(l.again, s) }

// add has a socket called. It may be called before add returns.
func (l *loop) add(fd int, s socket, events uint32) error {
	l.mu.Lock()
	l.sockets[int32(fd)] = s
	l.mu.Unlock()
	if err := unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		l.remove(fd)
		return err
	}
	return nil
}

// remove forgets a socket, before it is closed, which removes it from the epoll.
func (l *loop) remove(fd int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sockets, int32(fd))
}

// loops are as many as the processors, and used in turn.
type loops struct {
	all   []*loop
	pipes *pipes
	turn  atomic.Uint32
}

// open makes the loops, unless they are there.
func (l *loops) open() error {
	if l.all != nil {
		return nil
	}
	made := loops{pipes: newPipes()}
	for range runtime.GOMAXPROCS(0) {
		one, err := newLoop(made.pipes)
		if err != nil {
			made.close()
			return err
		}
		made.all = append(made.all, one)
	}
	l.all, l.pipes = made.all, made.pipes
	return nil
}

func (l *loops) next() *loop { return l.all[l.turn.Add(1)%uint32(len(l.all))] }

func (l *loops) close() {
	for _, one := range l.all {
		one.close()
	}
	if l.pipes != nil {
		l.pipes.closeFree()
	}
}
