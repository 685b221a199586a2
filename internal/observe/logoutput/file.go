package logoutput

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/observe/linequeue"
)

// Files are the files of a log.
type Files struct{ open []*file }

// A file takes the lines from one level to below another.
type file struct {
	from, below slog.Level
	*linequeue.Writer
	to *bounded
}

// OpenFile opens one file for all lines. It is appended to, and emptied when a line would
// make it larger than max bytes; with 0 it is not limited.
func OpenFile(path string, max uint64) (*Files, error) {
	f := &Files{}
	return f, f.add(path, max, 0, never, always)
}

// OpenFolder opens a file for each severity, PROGRAM.INFO, PROGRAM.WARNING and
// PROGRAM.ERROR. Each one gets the lines of higher severities too, unless only is set.
func OpenFolder(folder, program string, max uint64, only bool) (*Files, error) {
	f := &Files{}
	levels := []slog.Level{never, slog.LevelWarn, slog.LevelError, always}
	for i, name := range severityNames()[:Fatal] {
		below := always
		if only {
			below = levels[i+1]
		}
		if err := f.add(filepath.Join(folder, program+"."+name), max, inFolder, levels[i], below); err != nil {
			return nil, errors.Join(err, f.Close(0))
		}
	}
	return f, nil
}

// inFolder is for files whose names are known in a folder that others may write to: no links,
// and no waiting for the reader of a pipe.
const inFolder = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func (f *Files) add(path string, max uint64, flags int, from, below slog.Level) error {
	to, err := openBounded(path, max, flags)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	f.open = append(f.open, &file{from, below, linequeue.New(to), to})
	return nil
}

// Close waits until all lines are written, but for each file not longer than a time, and
// closes the files. It may be called on nil.
func (f *Files) Close(limit time.Duration) error {
	if f == nil {
		return nil
	}
	var errs []error
	for _, one := range f.open {
		one.Flush(limit)
		errs = append(errs, one.to.close())
	}
	return errors.Join(errs...)
}

// A bounded file is emptied when it is full.
type bounded struct {
	max uint64

	mu   sync.Mutex
	f    *os.File
	size uint64
}

// openBounded opens a file to append to. With flags, it must be a file of this user.
func openBounded(path string, max uint64, flags int) (*bounded, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|flags, 0o640)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if flags != 0 && (!info.Mode().IsRegular() || !ok || int(owner.Uid) != os.Geteuid()) {
		return nil, errors.Join(fmt.Errorf("%s must be a file of the current user", path), f.Close())
	}
	if !info.Mode().IsRegular() {
		// Pipes, such as /dev/stdout, can't be emptied.
		max = 0
	}
	return &bounded{max: max, f: f, size: uint64(info.Size())}, nil
}

// Write implements io.Writer.
func (b *bounded) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.max > 0 && b.size+uint64(len(line)) > b.max {
		if err := b.f.Truncate(0); err != nil {
			return 0, err
		}
		b.size = 0
	}
	n, err := b.f.Write(line)
	b.size += uint64(n)
	return n, err
}

func (b *bounded) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.f.Close()
}
