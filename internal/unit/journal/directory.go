package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A directory in memory, which is locked until it is closed.
type directory struct {
	*os.Root
	lock *os.File
}

// openDirectory opens a directory, creates it if the one above is in memory, and locks it.
func openDirectory(path string) (_ *directory, err error) {
	path = filepath.Clean(path)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, err
		}
	}
	d := &directory{}
	if d.Root, err = os.OpenRoot(path); err != nil {
		return nil, err
	}
	// What is checked is what was opened: names may lead elsewhere meanwhile.
	if d.lock, err = d.Open("."); err != nil {
		return nil, errors.Join(err, d.Root.Close())
	}
	err = inMemory(d.lock)
	if err == nil {
		err = private(d.lock)
	}
	if err == nil {
		err = lock(d.lock)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// create makes a directory for this user alone, but not on a disk.
func create(path string) error {
	above, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer above.Close()
	if err := inMemory(above); err != nil {
		return err
	}
	return os.Mkdir(path, 0o700)
}

// inMemory refuses a directory on anything that is not kept in memory alone.
func inMemory(dir *os.File) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return os.NewSyscallError("fstatfs", err)
	}
	switch uint32(stat.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return nil
	}
	return fmt.Errorf("%s is not in memory: private keys must not lie on a disk; mount a tmpfs there, in Kubernetes a volume emptyDir with \"medium: Memory\"", dir.Name())
}

// private refuses a directory that is another user's, or that others can read or write to.
func private(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("private keys are for one user alone: it must be the current user's with the mode 0700, and has the mode %#o; give the name of a directory in it, which is created", info.Mode().Perm())
	}
	return nil
}

func lock(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("another edge uses it")
	}
	return os.NewSyscallError("flock", err)
}

// Close gives it free.
func (d *directory) Close() error { return errors.Join(d.lock.Close(), d.Root.Close()) }
