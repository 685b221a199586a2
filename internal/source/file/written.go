package file

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// writeDelay is how long a file is to be left alone since a process may be writing it,
// and whether it exists. A file that is not written in place has been changed, by a
// rename for example, after its content.
func writeDelay(path string, now time.Time) (delay time.Duration, exists bool) {
	info, err := os.Stat(path)
	if err != nil {
		_, err = os.Lstat(path)
		return 0, err == nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return 0, true
	}
	age := now.Sub(info.ModTime())
	switch {
	case age < -openQuiet:
		// The time was set, or is another machine's.
		return 0, true
	case age < quiet && stat.Mtim == stat.Ctim:
		return quiet - age, true
	case age < openQuiet && isOpen(path):
		return min(quiet, openQuiet-age), true
	}
	return 0, true
}

func isUnsettled(path string) bool {
	delay, _ := writeDelay(path, time.Now())
	return delay > 0
}

// isOpen reports whether a process has the file open for writing, as far as that can
// be known: the kernel refuses a lease then. Only the file's owner and root may ask.
func isOpen(path string) bool {
	const setLease = 1024
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	// Closing the file ends the lease.
	defer file.Close()
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), setLease, syscall.F_RDLCK)
	return errors.Is(errno, syscall.EAGAIN)
}
