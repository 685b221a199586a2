// Package geodb follows GeoIP databases. It downloads them once, if it is to, and looks at the files in a folder,
// which may be mounted. Of each it keeps a copy for NGINX, which is replaced as a whole, by a file that it has read
// to the end before.
//
// It knows the format of databases. What is looked up in them, and whether NGINX reads them, is for others.
package geodb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// Settings are those of a Folder.
type Settings struct {
	// Path is the folder of the databases, EDITION.mmdb. It need not exist.
	Path     string
	Editions []string
	// Copies is the folder that NGINX reads. It must exist.
	Copies string
	// Download says where to get databases at the start.
	Download Download
	// Interval is the time between two looks at the folder, a second if it is 0. A file is read when two looks in a
	// row have found it the same.
	Interval time.Duration
	Log      *slog.Logger
}

// A Folder follows the databases of a folder.
type Folder struct {
	settings  Settings
	databases []*database
	// wanted is closed when databases are.
	wanted chan struct{}
	want   sync.Once

	mu sync.Mutex
	// failed are the reasons why downloads failed, by edition.
	failed map[string]string
}

// A database is what is known of one edition.
type database struct {
	edition, path, copy string
	// seen is the file at the last look, and read the one that was read last.
	seen, read identity
	// digest is that of the copy, and problem says what is wrong with the newest file.
	digest, problem string
	// wrote is the time that the copy has. NGINX, if it looks by itself, takes a copy for a new one only if that is in a
	// later second than when NGINX opened the last one.
	wrote time.Time
	// sent is the last object.
	sent source.GeoDatabase
}

// An identity is what differs between two files, or after a file was written to.
type identity struct {
	device, inode    uint64
	size             int64
	written, changed syscall.Timespec
}

// New makes a Folder.
func New(s Settings) *Folder {
	if s.Interval == 0 {
		s.Interval = time.Second
	}
	f := &Folder{settings: s, wanted: make(chan struct{}), failed: map[string]string{}}
	for _, edition := range s.Editions {
		f.databases = append(f.databases, &database{edition: edition, path: filepath.Join(s.Path, edition+".mmdb"), copy: filepath.Join(s.Copies, edition+".mmdb")})
	}
	return f
}

// Subscribe has the databases looked at from now on, and downloaded if they are to be.
func (f *Folder) Subscribe() { f.want.Do(func() { close(f.wanted) }) }

// Run follows the databases until ctx ends. It returns nil.
func (f *Folder) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	select {
	case <-f.wanted:
	case <-ctx.Done():
		return nil
	}
	var group sync.WaitGroup
	defer group.Wait()
	if f.settings.Download.wanted() {
		group.Go(func() { f.download(ctx) })
	}
	ticker := time.NewTicker(f.settings.Interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		var changes []source.Change
		for _, d := range f.databases {
			f.look(d, first)
			if object := f.object(d); object.Digest != d.sent.Digest || object.Problem != d.sent.Problem {
				d.sent = object
				changes = append(changes, source.Change{Object: &object})
			}
		}
		if changes != nil {
			deliver(ctx, changes)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (f *Folder) object(d *database) source.GeoDatabase {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := source.GeoDatabase{ObjectMeta: metav1.ObjectMeta{Name: d.edition}, Digest: d.digest, Problem: d.problem}
	if why := f.failed[d.edition]; why != "" && o.Problem != "" {
		o.Problem += "; its download failed: " + why
	}
	return o
}

// look reads the file of a database if it is another one than before. at once says that it need not have been the
// same at the last look.
func (f *Folder) look(d *database, atOnce bool) {
	if _, err := os.Lstat(d.copy); d.digest != "" && errors.Is(err, fs.ErrNotExist) {
		// Something cleans up there.
		d.digest, d.read = "", identity{}
	}
	found, err := identify(d.path)
	switch {
	case err != nil:
		d.seen, d.read = identity{}, identity{}
		d.problem = reason(d.path, err)
	case found == d.read:
	case found != d.seen && !atOnce:
		d.seen = found
	default:
		d.seen = found
		f.take(d, found)
	}
}

// take has NGINX read a file from now on, if it is a database.
func (f *Folder) take(d *database, found identity) {
	began := time.Now()
	made, digest, err := copyFile(d.path, f.settings.Copies)
	if err != nil {
		// It is read again at the next look.
		d.problem = reason(d.path, err)
		return
	}
	defer os.Remove(made) // After success, it does not exist any more.
	if d.read = found; digest == d.digest {
		d.problem = ""
		return
	}
	if err := Verify(made); err != nil {
		d.problem = fmt.Sprintf("%s is not a database that can be used: %v", d.path, err)
		return
	}
	if err := d.place(made); err != nil {
		d.read, d.problem = identity{}, fmt.Sprintf("%s could not be copied: %v", d.path, err)
		return
	}
	d.digest, d.problem = digest, ""
	f.settings.Log.Info("read a GeoIP database", "file", d.path, "bytes", found.size, "took", time.Since(began).Round(time.Millisecond))
}

// place replaces the last copy.
func (d *database) place(made string) error {
	at := time.Now()
	if at.Before(d.wrote) {
		at = d.wrote
	}
	at = at.Add(time.Second)
	if err := errors.Join(os.Chmod(made, 0o644), os.Chtimes(made, at, at), os.Rename(made, d.copy)); err != nil {
		return err
	}
	d.wrote = at
	return nil
}

// identify follows symbolic links, by which Kubernetes exchanges what it mounts.
func identify(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return identity{}, errors.New("not a file")
	}
	return identity{uint64(stat.Dev), stat.Ino, stat.Size, stat.Mtim, stat.Ctim}, nil
}

// reason says why a file can't be read.
func reason(path string, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return path + " does not exist"
	}
	var wrong *fs.PathError
	if errors.As(err, &wrong) {
		err = wrong.Err
	}
	return fmt.Sprintf("%s can't be read: %v", path, err)
}
