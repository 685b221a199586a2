package logtarget

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// lookPause is how often a file is compared with what its name stands for.
const lookPause = time.Second

// A file is opened again by its name once that was renamed or removed, as rotation does.
type file struct {
	*os.File
	looked time.Time
}

func openFile(name string) (*file, error) {
	// Without O_NONBLOCK, a pipe that nothing reads would block.
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o644) //nolint:gosec // As NGINX has it.
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller says what it is for.
	}
	return &file{File: f, looked: time.Now()}, nil
}

// Write writes a line.
func (f *file) Write(line []byte) (int, error) {
	if now := time.Now(); now.Sub(f.looked) >= lookPause {
		f.looked = now
		f.follow()
	}
	n, err := f.File.Write(line)
	if err != nil {
		return n, fmt.Errorf("write the log: %w", err)
	}
	return n, nil
}

// follow opens the file again if its name stands for another one, or none. If that fails, lines
// go on to the one that is open.
func (f *file) follow() {
	named, err := os.Stat(f.Name())
	if err == nil {
		if open, err := f.Stat(); err != nil || os.SameFile(named, open) {
			return
		}
	}
	next, err := openFile(f.Name())
	if err != nil {
		return
	}
	// A log that can't be closed has nowhere to be reported.
	_ = f.Close()
	f.File = next.File
}
