package nginx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The kernel limits names of sockets to 107 bytes.
const maxSocketName = 107

// A RunDir is the directory that one NGINX runs in, held by one controller:
//
//	nginx.conf, generation, …   static files
//	files/                      static files that nginx.conf names
//	lua/                        Lua files, which workers read
//	sock/                       unix sockets, NGINX's and the controller's, 0700
//	tmp/                        the workers' temporary files, 0700 and theirs
//	lock                        held while the controller lives
type RunDir struct {
	path   string
	lock   *os.File
	worker Worker
}

// A Worker is the user of the workers. Both names are empty if NGINX is not started
// by root: then workers run as the controller's user.
type Worker struct {
	User, Group string
	uid, gid    int
}

// DefaultRunDir is the run directory of an instance by name, which must be the same
// when the instance is started again, such as the ports.
func DefaultRunDir(instance string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("headgate-%d-%s", os.Getuid(), instance))
}

// OpenRunDir creates the directory if necessary, and locks it. It fails if another
// controller holds it, if another user owns it, or if the workers' user can't
// access it.
func OpenRunDir(name string) (_ *RunDir, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the run directory %s: %w", name, err)
		}
	}()
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o711); err != nil {
		return nil, err
	}
	if err := owned(path); err != nil {
		return nil, err
	}
	// One spelling, so that the NGINX of an earlier controller is recognized.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	d := &RunDir{path: path}
	if name := d.ControllerSocket(); len(name) > maxSocketName {
		return nil, fmt.Errorf("%s has %d bytes, sockets have at most %d; use a shorter directory", name, len(name), maxSocketName)
	}
	if d.worker, err = findWorker(); err != nil {
		return nil, err
	}
	if err := d.worker.reaches(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if d.lock, err = takeLock(filepath.Join(path, "lock")); err != nil {
		return nil, err
	}
	if err := d.lay(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// owned rejects a directory that another user may have created.
func owned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() {
		return errors.New("must be a directory of the current user: use another directory, or a subdirectory")
	}
	return nil
}

func (d *RunDir) lay() error {
	for _, folder := range []struct {
		name string
		mode fs.FileMode
	}{{"", 0o711}, {"sock", 0o700}, {"tmp", 0o700}, {"files", 0o755}, {"lua", 0o755}} {
		path := filepath.Join(d.path, folder.name)
		if err := os.MkdirAll(path, folder.mode); err != nil {
			return err
		}
		// The mode must not depend on the umask of this or an earlier process.
		if err := os.Chmod(path, folder.mode); err != nil {
			return err
		}
	}
	if d.worker.User == "" {
		return nil
	}
	return os.Chown(filepath.Join(d.path, "tmp"), d.worker.uid, d.worker.gid)
}

// findWorker finds the user for workers, www-data or "nobody", if this process runs as root.
func findWorker() (Worker, error) {
	if os.Geteuid() != 0 {
		return Worker{}, nil
	}
	for _, name := range []string{"www-data", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		group, err := user.LookupGroupId(found.Gid)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(found.Uid)
		gid, err2 := strconv.Atoi(found.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return Worker{}, fmt.Errorf("user %s: %w", name, err)
		}
		return Worker{User: name, Group: group.Name, uid: uid, gid: gid}, nil
	}
	return Worker{}, errors.New("there is neither a user www-data nor a user \"nobody\" for NGINX's workers")
}

// reaches checks that the worker can pass through a directory and its parents.
func (w Worker) reaches(path string) error {
	for w.User != "" {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); info.Mode().Perm()&0o001 == 0 && (!ok || int(stat.Uid) != w.uid) {
			return fmt.Errorf("NGINX's workers run as %s, which cannot access %s; use another directory", w.User, path)
		}
		if path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	return nil
}

// takeLock takes a lock, which is held until the file is closed or the process ends.
func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) // If it can't be read, the error has no process.
		lock.Close()
		return nil, fmt.Errorf("another controller uses it (process %s): %w", strings.TrimSpace(string(holder)), err)
	}
	err = lock.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(lock, os.Getpid())
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// Path is the absolute path of the directory without symbolic links.
func (d *RunDir) Path() string { return d.path }

// Conf is the file that NGINX is started with.
func (d *RunDir) Conf() string { return filepath.Join(d.path, "nginx.conf") }

// Socket is the socket of the data plane's API.
func (d *RunDir) Socket() string { return filepath.Join(d.path, "sock", "api.sock") }

// ControllerSocket is the socket of the controller's API, without NGINX. Its name is
// the longest of all sockets.
func (d *RunDir) ControllerSocket() string {
	return filepath.Join(d.path, "sock", "controller.sock")
}

// Worker is the user for the directive of the same name.
func (d *RunDir) Worker() Worker { return d.worker }

// Write writes files, whose names are relative to the directory. Each file is
// written completely or not at all. Workers may read them.
func (d *RunDir) Write(files map[string][]byte) error {
	for name, content := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("write %s: it is not inside the run directory", name)
		}
		if err := writeFile(filepath.Join(d.path, name), content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // After success, it does not exist any more.
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// WriteGeneration writes the number for workers that start from now on.
func (d *RunDir) WriteGeneration(generation int) error {
	return d.Write(map[string][]byte{"generation": []byte(strconv.Itoa(generation) + "\n")})
}

// WriteLua writes the Lua files, whose names are relative to lua/, and removes all
// others there.
func (d *RunDir) WriteLua(files map[string][]byte) error {
	inside := map[string][]byte{}
	for name, content := range files {
		inside[filepath.Join("lua", name)] = content
	}
	if err := d.Write(inside); err != nil {
		return err
	}
	return d.Keep("lua", inside)
}

// Keep removes all files of a folder but these, whose names are relative to the directory.
func (d *RunDir) Keep(folder string, files map[string][]byte) error {
	err := filepath.WalkDir(filepath.Join(d.path, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		name, err := filepath.Rel(d.path, path)
		if _, kept := files[name]; kept || err != nil {
			return err
		}
		return os.Remove(path)
	})
	if err != nil {
		return fmt.Errorf("remove old files from %s: %w", folder, err)
	}
	return nil
}

// removeSocket removes the socket of a killed NGINX, which would prevent its
// successor from listening.
func (d *RunDir) removeSocket() error {
	if err := os.Remove(d.Socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	return nil
}

// Close unlocks the directory. Its content stays.
func (d *RunDir) Close() error { return d.lock.Close() }
