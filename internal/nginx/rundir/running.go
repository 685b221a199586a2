package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// controllerSocket is the controller's socket in its run directory.
const controllerSocket = "sock/controller.sock"

// Socket is the socket of the data plane's API in a run directory.
func Socket(dir string) string { return filepath.Join(dir, "sock", "api.sock") }

// ControllerSocket is the socket of the controller's API in a run directory.
func ControllerSocket(dir string) string { return filepath.Join(dir, controllerSocket) }

// Running lists the run directories of this user's controllers that run on this machine
// or in this container, sorted.
func Running() ([]string, error) {
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("find controllers: %w", err)
	}
	var dirs []string
	for _, socket := range listening(string(sockets)) {
		dir, is := strings.CutSuffix(socket, "/"+controllerSocket)
		// The kernel lists sockets of other users too, those of other containers on the same
		// network, and those whose file is gone.
		if !is || !isSafe(dir) || filepath.Clean(socket) != socket {
			continue
		}
		if _, err := os.Lstat(socket); err == nil {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// A line of /proc/net/unix, with its flags and its path.
var socketLine = regexp.MustCompile(`^[0-9A-Fa-f]+: [0-9A-F]{8} [0-9A-F]{8} ([0-9A-F]{8}) [0-9A-F]{4} [0-9A-F]{2} +[0-9]+ (/.*)$`)

// listens is the flag of a socket that is listened on.
const listens = "00010000"

// listening lists the paths of the sockets that are listened on.
func listening(table string) []string {
	var paths []string
	for line := range strings.Lines(table) {
		fields := socketLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if fields != nil && fields[1] == listens {
			paths = append(paths, fields[2])
		}
	}
	return paths
}
