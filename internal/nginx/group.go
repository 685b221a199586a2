package nginx

import (
	"fmt"
	"os"
	"slices"
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

// adopt makes this process the parent of workers whose master dies, so that their
// end is noticed at once. Process 1 is their parent otherwise.
func adopt() error {
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("adopt workers: %w", errno)
	}
	return nil
}

// orphans are the groups of NGINX processes that an earlier controller left in this
// directory. Processes that hold the directory's socket belong to it: unlike the
// number in a pid file, a socket never belongs to another process, and workers
// without a master hold it too.
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
		// If the leader of a group is not NGINX, a controller did not create it.
		if leader := title(group); leader == "" || strings.HasPrefix(leader, "nginx: master") {
			groups = append(groups, group)
		}
	}
	return groups
}

func title(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(text)
}
