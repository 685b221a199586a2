package nginx

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Each NGINX has a process group of its own. Its number is the master's process ID,
// and it can outlive the master.

func signalGroup(group int, signal syscall.Signal) {
	// If no process is left, there is nothing to do.
	_ = syscall.Kill(-group, signal)
}

// groupAlive reports whether a group has processes. Its master must have been
// waited for, or not be a child of this process. Adopted workers are waited for
// here.
func groupAlive(group int) bool {
	for {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			break
		}
	}
	return syscall.Kill(-group, 0) != syscall.ESRCH
}

// CloseMemory closes the memory of this process, which holds all private keys, to
// other processes of its user, and keeps it out of core dumps. NGINX does the same
// in its Lua.
func CloseMemory() error {
	const setDumpable = 4
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setDumpable, 0, 0); errno != 0 {
		return fmt.Errorf("close the memory of the process: %w", errno)
	}
	return nil
}

// adopt makes this process the parent of workers whose master dies, so that their
// end is noticed at once. Process 1 is their parent otherwise.
func adopt() error {
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("adopt workers: %w", errno)
	}
	return nil
}

// orphans are the groups of NGINX processes that an earlier controller left:
// at most one listens on the socket of its run directory. The kernel names the process that
// made a socket listen, which was the master: unlike the number in a pid file, a
// socket never belongs to another process, and workers without a master hold it too.
// Which processes hold it can't be seen, since their memory is closed.
func orphans(socket string) []int {
	group, err := listener(socket)
	if err != nil {
		// No process listens.
		return nil
	}
	// While the group has processes, no other process gets its number. If its leader
	// is not NGINX, a controller did not create it.
	if !groupAlive(group) {
		return nil
	}
	if leader := title(group); leader != "" && !strings.HasPrefix(leader, "nginx: master") {
		return nil
	}
	return []int{group}
}

// listener is the process that made a unix socket listen.
func listener(socket string) (pid int, err error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		return 0, err
	}
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}

func title(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(text)
}
