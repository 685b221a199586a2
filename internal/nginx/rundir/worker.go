package rundir

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// A Worker is the user of the workers. Both names are empty if NGINX is not started
// by root: then workers run as the controller's user.
type Worker struct {
	User, Group string
	uid, gid    int
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
