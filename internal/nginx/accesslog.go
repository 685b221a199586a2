package nginx

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// copyTimeout is how long the end waits for a reader of the access log.
const copyTimeout = 2 * time.Second

// An AccessLog connects NGINX's access log to the controller's standard output.
// A nil AccessLog discards it.
type AccessLog struct {
	stdout *os.File
	// pipe is the pipe that NGINX writes to if it can't open stdout.
	pipe *os.File
	done chan struct{}
}

// OpenAccessLog finds out how NGINX can write to stdout. It opens /dev/stdout if
// that works. A socket can't be opened by name, nor can a pipe of another user.
// Then NGINX writes to a pipe that the controller copies to stdout.
func OpenAccessLog(stdout *os.File) (*AccessLog, error) {
	a := &AccessLog{stdout: stdout, done: make(chan struct{})}
	name := fmt.Sprintf("/proc/self/fd/%d", stdout.Fd())
	if file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0); err == nil {
		close(a.done)
		// Workers share a pipe. A line that does not fit into what is free has those of
		// other workers in between: clients can make long ones.
		return a, errors.Join(enlarge(stdout), appendOnly(stdout, file))
	}
	r, w, err := logPipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe for the access log: %w", err)
	}
	a.pipe = w
	go func() {
		defer close(a.done)
		defer r.Close()
		// Without a reader NGINX would block as soon as the pipe is full.
		if _, err := io.Copy(stdout, r); err != nil {
			io.Copy(io.Discard, r)
		}
	}()
	return a, nil
}

// appendOnly closes opened, and makes stdout append if it is a file: NGINX
// appends, and lines that the controller writes elsewhere in the file would
// overwrite those of NGINX.
func appendOnly(stdout, opened *os.File) error {
	defer opened.Close()
	info, err := stdout.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, stdout.Fd(), syscall.F_GETFL, 0)
	if errno == 0 {
		_, _, errno = syscall.Syscall(syscall.SYS_FCNTL, stdout.Fd(), syscall.F_SETFL, flags|syscall.O_APPEND)
	}
	if errno != 0 {
		return fmt.Errorf("set standard output to append: %w", errno)
	}
	return nil
}

// Path is the file for the access_log directive. It is valid in processes that a
// Process starts.
func (a *AccessLog) Path() string {
	if a.pipe == nil {
		return "/dev/stdout"
	}
	return "/proc/self/fd/3"
}

// Piped reports whether NGINX writes to a pipe that the controller reads.
func (a *AccessLog) Piped() bool { return a.pipe != nil }

// pass passes the file of Path to a command.
func (a *AccessLog) pass(cmd *exec.Cmd) {
	if a == nil {
		return
	}
	cmd.Stdout = a.stdout
	if a.pipe != nil {
		cmd.ExtraFiles = []*os.File{a.pipe}
	}
}

// Close waits until everything that NGINX wrote has been copied, unless no process reads
// it. It must be called after NGINX has ended.
func (a *AccessLog) Close() {
	if a.pipe != nil {
		a.pipe.Close()
	}
	select {
	case <-a.done:
	case <-time.After(copyTimeout):
	}
}
