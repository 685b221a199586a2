// Package worker knows of which generation of nginx.conf each of NGINX's worker processes is.
package worker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/dataplane"
)

// Generations are those of workers that accepted connections, by process ID.
type Generations map[int]int

// Accepting notes the generations of workers, and counts the workers of a generation that accept connections, and
// those of other generations. A killed worker can't report that it stopped, and
// its process ID may belong to another process by now, so only children of the
// master count.
func (g Generations) Accepting(state dataplane.State, master, generation int) (fresh, old int) {
	for _, w := range state.Accepting {
		switch {
		case !isChild(w.PID, master):
			continue
		case w.Generation == generation:
			fresh++
		default:
			old++
		}
		g[w.PID] = w.Generation
	}
	return fresh, old
}

// Old counts the workers of other generations that finish their connections, and these generations.
func (g Generations) Old(master, current int) (workers, generations int) {
	alive := map[int]bool{}
	for pid, generation := range g {
		switch {
		case !isWorker(pid, master):
			delete(g, pid)
		case generation != current:
			alive[generation] = true
			workers++
		}
	}
	return workers, len(alive)
}

// isWorker reports whether a process is a worker of the master, or of one that died, whose
// workers this process adopted.
func isWorker(pid, master int) bool {
	if !isChild(pid, master) && !isChild(pid, os.Getpid()) {
		return false
	}
	title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.HasPrefix(string(title), "nginx: worker")
}

// isChild reports whether a process exists and has that parent.
func isChild(pid, parent int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The format is "PID (NAME) STATE PARENT …", and NAME may contain anything.
	_, behind, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	fields := bytes.Fields(behind)
	return ok && len(fields) > 1 && string(fields[1]) == strconv.Itoa(parent)
}
