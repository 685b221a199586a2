package nginx

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Each NGINX runs in a process group of its own, which has the master's pid as
// its number and outlives the master.

// signalGroup sends a signal to all processes of a group that are left.
func signalGroup(group int, signal syscall.Signal) {
	// A group without processes is what the signal is for.
	_ = syscall.Kill(-group, signal)
}

// groupAlive tells whether a group has processes. Its master must have been
// waited for, or not be a child of this process: workers that were adopted are
// waited for here.
func groupAlive(group int) bool {
	for {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			break
		}
	}
	return syscall.Kill(-group, 0) != syscall.ESRCH
}

// adopt makes this process the parent of workers whose master dies, as process
// 1 is without it, so that their end is seen at once.
func adopt() error {
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("adopt workers: %w", errno)
	}
	return nil
}

// orphans are the groups of NGINX processes that an earlier controller left in
// this directory. What proves that they belong to it is that they hold its
// socket: unlike the pid file, a socket is never another process's, and
// workers without a master hold it too.
func (d *RunDir) orphans() []int {
	var inodes []string
	for fields := range rows("/proc/net/unix") {
		if len(fields) == 8 && fields[7] == d.Socket() {
			inodes = append(inodes, fields[6])
		}
	}
	var groups []int
	for _, pid := range socketHolders(inodes) {
		group, err := syscall.Getpgid(pid)
		if err != nil || slices.Contains(groups, group) || !strings.HasPrefix(title(pid), "nginx: ") {
			continue
		}
		// A group that anything but NGINX leads was not made by a controller.
		if leader := title(group); leader == "" || strings.HasPrefix(leader, "nginx: master") {
			groups = append(groups, group)
		}
	}
	return groups
}

// title is a process's command line, empty if there is no such process.
func title(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(text)
}
