// Command wait-shutdown has the controller in the same container leave, and
// waits until its NGINX has ended: a container's preStop hook, after which
// nothing is served any more.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// poll is the time between two looks at what still runs.
const poll = 50 * time.Millisecond

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "wait-shutdown:", err)
		os.Exit(1)
	}
}

func run() error {
	all, err := processes()
	if err != nil {
		return err
	}
	controllers := slices.DeleteFunc(all, func(p process) bool { return !p.isController() })
	if len(controllers) == 0 {
		return errors.New("no controller runs here")
	}
	for _, c := range controllers {
		if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("tell process %d to leave: %w", c.pid, err)
		}
	}
	for {
		all, err := processes()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(p process) bool { return p.isChildOf(controllers) }) {
			return nil
		}
		time.Sleep(poll)
	}
}

// A process is what the kernel tells everybody of one.
type process struct {
	pid, parent int
	// name is the program's, at most 15 bytes of it.
	name string
}

// isController knows the program by its own name and by the one that
// Deployments of ingress-nginx call it by.
func (p process) isController() bool {
	return p.name == "headgate" || p.name == "nginx-ingress-c"
}

// isChildOf tells whether one of the controllers has started the process: all
// that controllers run is NGINX, which also comes to them when a part of it
// dies.
func (p process) isChildOf(controllers []process) bool {
	return slices.ContainsFunc(controllers, func(c process) bool { return c.pid == p.parent })
}

// processes are all that can be seen from here.
func processes() ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("/proc tells of no processes")
	}
	var all []process
	for _, file := range files {
		// One that can't be read or understood has just ended.
		if text, err := os.ReadFile(file); err == nil {
			if p, ok := parse(text); ok {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// parse reads "PID (NAME) STATE PARENT …", where the name may hold anything.
func parse(stat []byte) (process, bool) {
	before, after := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if before < 0 || after < before {
		return process{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(stat[:before])))
	fields := bytes.Fields(stat[after+1:])
	if err != nil || len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return process{pid: pid, parent: parent, name: string(stat[before+1 : after])}, err == nil
}
