// Package rundir is the directory that one NGINX runs in: its files, its sockets, and which user its
// workers are.
//
// It must not know what files say, nor run anything.
package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The kernel limits names of sockets to 107 bytes.
const maxSocketName = 107

// A Dir is the directory that one NGINX runs in, held by one controller:
//
//	nginx.conf, generation, …   static files
//	quic.key                    what tokens of QUIC are made with, kept over reloads and restarts, 0600
//	files/                      static files that nginx.conf names, which workers don't read, 0700
//	lua/                        Lua files, which workers read
//	geo/                        databases of where addresses are, which workers read
//	sock/                       unix sockets, NGINX's and the controller's, 0700
//	tmp/                        the workers' temporary files, and sockets that only they reach, 0700 and theirs
//	lock                        held while the controller lives
type Dir struct {
	path   string
	lock   *os.File
	worker Worker
	// lua are the files of WriteLua.
	lua map[string][]byte
	// kept is the directory, locked: systemd-tmpfiles removes nothing from it.
	kept *os.File
}

// Default finds the run directory of an instance by name, which must be the same
// when the instance is started again, such as the ports. The directory need not exist.
// Another user can take its name in the system's temporary directory only: then this is
// the first one of this user whose name begins so.
func Default(instance string) string { return findIn(runtimeDirs(os.Geteuid()), instance) }

func findIn(parents []string, instance string) string {
	candidates := candidatesIn(parents, instance)
	others, _ := filepath.Glob(temporary(instance) + "-*") // The pattern is valid.
	for _, path := range append(candidates, others...) {
		if isSafe(path) {
			return path
		}
	}
	return candidates[0]
}

// candidatesIn are the paths for a new directory, the best first.
func candidatesIn(parents []string, instance string) []string {
	var paths []string
	for _, parent := range parents {
		if isSafe(parent) {
			paths = append(paths, filepath.Join(parent, "headgate-"+instance))
		}
	}
	return append(paths, temporary(instance))
}

// MakeDefault is Default, and creates the directory.
func MakeDefault(instance string) (string, error) {
	return makeIn(runtimeDirs(os.Geteuid()), instance)
}

func makeIn(parents []string, instance string) (string, error) {
	if path := findIn(parents, instance); isSafe(path) {
		return path, nil
	}
	var err error
	for _, path := range candidatesIn(parents, instance) {
		// /run may be read-only.
		if err = os.Mkdir(path, 0o711); err == nil {
			return path, nil
		}
	}
	path := temporary(instance)
	if errors.Is(err, fs.ErrExist) {
		// Another user took the name.
		path, err = os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	}
	if err != nil {
		return "", fmt.Errorf("create the run directory: %w", err)
	}
	return path, nil
}

func temporary(instance string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("headgate-%d-%s", os.Getuid(), instance))
}

// runtimeDirs are the directories for what runs, in which only this user creates
// files. Root's workers, of another user, can't enter $XDG_RUNTIME_DIR.
func runtimeDirs(uid int) []string {
	if uid == 0 {
		return []string{"/run"}
	}
	if own := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(own) {
		return []string{own}
	}
	return nil
}

// isSafe reports whether a directory belongs to this user, and no other user can write
// to it.
func isSafe(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && owned(path) == nil && info.Mode().Perm()&0o022 == 0
}

// Open creates the directory if necessary, and locks it. It fails if another
// controller holds it, if another user owns it, or if the workers' user can't
// access it.
func Open(name string) (_ *Dir, err error) {
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
	d := &Dir{path: path}
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
	err = d.lay()
	if err == nil {
		err = d.keep()
	}
	if err != nil {
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

// keep locks the directory itself, as tmpfiles.d(5) says.
func (d *Dir) keep() (err error) {
	if d.kept, err = os.Open(d.path); err != nil {
		return err
	}
	return syscall.Flock(int(d.kept.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
}

// Restore writes again what NGINX needs to reload and someone may have removed:
// folders and Lua files.
func (d *Dir) Restore() error {
	if err := d.lay(); err != nil {
		return fmt.Errorf("restore the run directory: %w", err)
	}
	return d.Write(d.lua)
}

func (d *Dir) lay() error {
	for _, folder := range []struct {
		name string
		mode fs.FileMode
	}{{"", 0o711}, {"sock", 0o700}, {"tmp", 0o700}, {"files", 0o700}, {"lua", 0o755}, {"geo", 0o755}} {
		path := filepath.Join(d.path, folder.name)
		if err := os.MkdirAll(path, folder.mode); err != nil {
			return err
		}
		// The mode must not depend on the umask of this or an earlier process.
		if err := os.Chmod(path, folder.mode); err != nil {
			return err
		}
	}
	if err := d.layQUICKey(); err != nil {
		return err
	}
	if d.worker.User == "" {
		return nil
	}
	return os.Chown(filepath.Join(d.path, "tmp"), d.worker.uid, d.worker.gid)
}

// layQUICKey writes a key if there is none, or not all of it. Without a key that reloads keep, a client whose
// connection ended with an old worker would not believe the new ones, and wait.
func (d *Dir) layQUICKey() error {
	path := filepath.Join(d.path, "quic.key")
	const size = 32
	if info, err := os.Lstat(path); err == nil && info.Size() == size {
		return nil
	}
	key := make([]byte, size)
	rand.Read(key) // It never fails.
	return os.WriteFile(path, key, 0o600)
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
func (d *Dir) Path() string { return d.path }

// Conf is the file that NGINX is started with.
func (d *Dir) Conf() string { return filepath.Join(d.path, "nginx.conf") }

// LinkConf makes a symbolic link to the configuration, and replaces what has that name.
func (d *Dir) LinkConf(name string) error {
	made := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.Symlink(d.Conf(), made); err != nil {
		return fmt.Errorf("link NGINX's configuration: %w", err)
	}
	if err := os.Rename(made, name); err != nil {
		return fmt.Errorf("link NGINX's configuration: %w", errors.Join(err, os.Remove(made)))
	}
	return nil
}

// GeoDatabases is the folder of databases of where addresses are.
func (d *Dir) GeoDatabases() string { return filepath.Join(d.path, "geo") }

// Socket is the socket of the data plane's API.
func (d *Dir) Socket() string { return Socket(d.path) }

// HandedSocket is that of TLS connections that the controller hands to NGINX.
func (d *Dir) HandedSocket() string { return filepath.Join(d.path, "sock", "tls.sock") }

// ControllerSocket is the socket of the controller's API, without NGINX. Its name is
// the longest of all sockets.
func (d *Dir) ControllerSocket() string {
	return ControllerSocket(d.path)
}

// Worker is the user for the directive of the same name.
func (d *Dir) Worker() Worker { return d.worker }

// Write writes files, whose names are relative to the directory. Each file is
// written completely or not at all. Workers may read them.
func (d *Dir) Write(files map[string][]byte) error {
	for name, content := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("write %s: it is not inside the run directory", name)
		}
		write := WriteFile
		if strings.HasPrefix(name, "files/") {
			// Some are secret, and only the master reads them.
			write = writeSecret
		}
		if err := write(filepath.Join(d.path, name), content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// WriteFile writes a file that workers may read, at once, and creates its folder.
func WriteFile(path string, content []byte) error { return writeMode(path, content, 0o644) }

func writeSecret(path string, content []byte) error { return writeMode(path, content, 0o600) }

func writeMode(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // After success, it does not exist any more.
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// WriteGeneration writes the number for workers that start from now on.
func (d *Dir) WriteGeneration(generation int) error {
	return d.Write(map[string][]byte{"generation": []byte(strconv.Itoa(generation) + "\n")})
}

// WriteLua writes the Lua files, whose names are relative to lua/, and removes all
// others there.
func (d *Dir) WriteLua(files map[string][]byte) error {
	inside := map[string][]byte{}
	for name, content := range files {
		inside[filepath.Join("lua", name)] = content
	}
	d.lua = inside
	if err := d.Write(inside); err != nil {
		return err
	}
	return d.Keep("lua", inside)
}

// Keep removes all files of a folder but these, whose names are relative to the directory.
func (d *Dir) Keep(folder string, files map[string][]byte) error {
	err := filepath.WalkDir(filepath.Join(d.path, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && folder == "files" {
			return nil
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

// RemoveSocket removes the socket of a killed NGINX, which would prevent its
// successor from listening.
func (d *Dir) RemoveSocket() error {
	own := filepath.Join(d.path, "tmp", "own_")
	for _, name := range []string{d.Socket(), d.HandedSocket(), own + "http.sock", own + "https.sock"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the old socket: %w", err)
		}
	}
	return nil
}

// Close unlocks the directory. Its content stays.
func (d *Dir) Close() error {
	if d.kept != nil {
		d.kept.Close()
	}
	return d.lock.Close()
}
