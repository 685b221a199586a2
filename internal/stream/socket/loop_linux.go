// Package socket has what the kernel does for connections and datagrams that no goroutine waits for: loops
// over epoll, relays that splice from one socket to another, UDP sockets, and ports that several sockets
// share.
package socket

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

// A Handler is called by its loop when something happened to it.
type Handler interface {
	// Ready must not wait. The events are those of epoll.
	Ready(events uint32)
}

// eventBatch is how many events a loop takes at once.
const eventBatch = 128

// A Loop waits for what happens to many sockets, and calls them one after the other. They
// need neither goroutines nor memory while nothing happens.
//
// It has an epoll of its own, which is one file for Go's poller: the loop is a goroutine
// that waits for that file, and never a thread that waits.
type Loop struct {
	file *os.File
	fd   int
	wait syscall.RawConn

	pipes   *pipes
	mu      sync.Mutex
	sockets map[int32]Handler
	// spare are UDP sockets by their families.
	spare map[uint16][]int

	// These are of the goroutine alone. The buffer is for what a socket reads, and now is the
	// time of the events.
	buffer [maxDatagram]byte
	now    time.Time
	events [eventBatch]unix.EpollEvent
	called [eventBatch]Handler
	again  []Handler
}

func newLoop(shared *pipes) (*Loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	// Go's poller takes only files that never wait.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	l := &Loop{file: os.NewFile(uintptr(fd), "epoll"), fd: fd, pipes: shared, sockets: map[int32]Handler{}, spare: map[uint16][]int{}}
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
func (l *Loop) close() {
	l.closeSpare()
	l.file.Close()
}

// run calls sockets until nothing happens. It reports false: that the loop must wait.
func (l *Loop) run(epoll uintptr) bool {
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
				s.Ready(l.events[i].Events)
			}
		}
		clear(l.called[:n])
		for _, s := range again {
			s.Ready(unix.EPOLLIN)
		}
		// Others have their turn, even if something happens all the time.
		runtime.Gosched()
	}
}

// Buffer is for what a socket that is called reads, and Now the time of the events.
func (l *Loop) Buffer() []byte { return l.buffer[:] }

// Now is explained there.
func (l *Loop) Now() time.Time { return l.now }

// Later calls a socket again, after the others. It is for sockets that were called.
func (l *Loop) Later(s Handler) { l.again = append(l.again, s) }

// Add has a socket called. It may be called before add returns.
func (l *Loop) Add(fd int, s Handler, events uint32) error {
	l.mu.Lock()
	l.sockets[int32(fd)] = s
	l.mu.Unlock()
	if err := unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		l.Remove(fd)
		return err
	}
	return nil
}

// Remove forgets a socket, before it is closed, which removes it from the epoll.
func (l *Loop) Remove(fd int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sockets, int32(fd))
}

// Loops are as many as the processors, and used in turn.
type Loops struct {
	all   []*Loop
	pipes *pipes
	turn  atomic.Uint32
}

// Open makes the loops, unless they are there.
func (l *Loops) Open() error {
	if l.all != nil {
		return nil
	}
	made := Loops{pipes: newPipes()}
	for range runtime.GOMAXPROCS(0) {
		one, err := newLoop(made.pipes)
		if err != nil {
			made.Close()
			return err
		}
		made.all = append(made.all, one)
	}
	l.all, l.pipes = made.all, made.pipes
	return nil
}

// Next is the loop whose turn it is.
func (l *Loops) Next() *Loop { return l.all[l.turn.Add(1)%uint32(len(l.all))] }

// Close ends the loops, which must have no sockets any more.
func (l *Loops) Close() {
	for _, one := range l.all {
		one.close()
	}
	if l.pipes != nil {
		l.pipes.closeFree()
	}
}
