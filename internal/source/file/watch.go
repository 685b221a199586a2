package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/internal/source/file/manifest"
)

const (
	// debounce collects the events of one operation, such as a rename within the
	// folder or an exchange of files.
	debounce = time.Millisecond
	// quiet is how long a file that was not renamed into its place must be unchanged
	// before it is read: what is half-written may lack what closes a path.
	quiet = 100 * time.Millisecond
	// openQuiet is the same for a file that a process has opened for writing.
	openQuiet = time.Second
	// busy is the longest wait for a file to be unchanged.
	busy = 10 * time.Second
	// emptyTimeout is how long a file that had objects and is empty now counts as
	// one that is being written.
	emptyTimeout = time.Second
	// look is the interval of checks that the folder is still the one that is
	// watched.
	look = time.Second
	// queued is how many events are read from the kernel before they are handled.
	queued = 4096
)

// A wait is when a path will be checked.
type wait struct {
	since, due time.Time
	// sure: a file that is empty then counts as empty.
	sure bool
	// placed: the last event was a rename into this place. Such a file is complete.
	placed bool
}

// enter watches the folder again and lists the files to read: those that exist
// and those that existed before.
func (f *Folder) enter() ([]string, error) {
	root := f.tree.root
	info, err := statFolder(root)
	if err != nil {
		return nil, reason(err)
	}
	f.tree.forget(root)
	files, bad := f.tree.add(root)
	if wrong := bad[root]; wrong != nil {
		return nil, errors.New(wrong.Reason)
	}
	f.info = info
	f.reportFolders(bad)
	return append(files, f.state.under(root)...), nil
}

// watch handles events until ctx ends.
func (f *Folder) watch(ctx context.Context) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-f.tree.watcher.Events:
			if !ok {
				return errors.New("no more events")
			}
			f.note(ev, time.Now())
		case err, ok := <-f.tree.watcher.Errors:
			if !ok {
				return errors.New("no more events")
			}
			// Events are lost, by an overflow or an error: the whole folder must
			// be read.
			f.reportLost(err)
			f.reenter()
		case <-ticker.C:
			f.look()
		case <-timer.C:
		}
		f.drain()
		f.handle(time.Now())
		if due, ok := f.next(); ok {
			timer.Reset(max(time.Until(due), 0))
		}
	}
}

// reportLost reports an error of the watcher, except an overflow.
func (f *Folder) reportLost(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		f.journal.set(f.tree.root, Problem{Reason: "events were lost: " + err.Error(), Effect: "the folder is read again"})
		f.journal.flush()
	}
}

// drain notes all events in the queue.
func (f *Folder) drain() {
	for {
		select {
		case ev, ok := <-f.tree.watcher.Events:
			if !ok {
				return
			}
			f.note(ev, time.Now())
		default:
			return
		}
	}
}

// note decides when the path of an event is checked.
func (f *Folder) note(ev fsnotify.Event, now time.Time) {
	path := ev.Name
	// The kernel reports a rename within watched folders by two events in a row.
	placed := f.renamed && ev.Op == fsnotify.Create
	f.renamed = ev.Op == fsnotify.Rename
	folder, name := filepath.Split(path)
	switch {
	case path == f.tree.root:
		if ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
			f.info = nil
			f.look()
		}
	case strings.HasPrefix(name, ".."):
		for link := range f.tree.links[filepath.Clean(folder)] {
			f.await(link, now, true)
		}
	case isHidden(name):
	case ev.Op == fsnotify.Chmod:
		// Access may have been granted. Times and links don't matter.
		if f.journal.has(path) {
			f.await(path, now, false)
		}
	case !ev.Has(fsnotify.Write) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) || isManifest(name):
		f.await(path, now, placed)
	}
}

// await schedules a check of a path.
func (f *Folder) await(path string, now time.Time, placed bool) {
	old, ok := f.waiting[path]
	if !ok || old.sure {
		old.since = now
	}
	f.waiting[path] = wait{since: old.since, due: now.Add(debounce), placed: placed}
}

// ready returns the files to read now, and puts off the check of those that a
// process may be writing. A file that is gone waits with them for a moment: it may
// have been copied before.
func (f *Folder) ready(files []string, waits map[string]wait) []string {
	now := time.Now()
	var ready, gone []string
	var last time.Time
	for _, path := range files {
		w, ok := waits[path]
		if !ok {
			w.since = now
		}
		var delay time.Duration
		exists := true
		if !w.sure && !isPlaced(path, waits) {
			delay, exists = writeDelay(path, now)
		}
		switch {
		case !exists && now.Sub(w.since) < 2*quiet:
			gone = append(gone, path)
		case delay > 0 && now.Sub(w.since) < busy:
			due := now.Add(delay)
			f.waiting[path] = wait{since: w.since, due: due}
			last = later(last, due)
		default:
			ready = append(ready, path)
		}
	}
	if last.IsZero() {
		return append(ready, gone...)
	}
	for _, path := range gone {
		w, ok := waits[path]
		if !ok {
			w.since = now
		}
		f.waiting[path] = wait{since: w.since, due: last}
	}
	return ready
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isPlaced reports whether a file, or a folder that it is in, was renamed into its
// place.
func isPlaced(path string, waits map[string]wait) bool {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if waits[path].placed {
			return true
		}
	}
	return false
}

// next is when the next path must be checked.
func (f *Folder) next() (due time.Time, ok bool) {
	for _, p := range f.waiting {
		if !ok || p.due.Before(due) {
			due, ok = p.due, true
		}
	}
	return due, ok
}

// handle checks all paths that are due, and those that are due soon, since they
// may belong to the same operation.
func (f *Folder) handle(now time.Time) {
	if due, ok := f.next(); !ok || due.After(now) {
		return
	}
	var paths []string
	waits := make(map[string]wait)
	for path, p := range f.waiting {
		if !p.due.After(now.Add(debounce / 2)) {
			paths = append(paths, path)
			waits[path] = p
			delete(f.waiting, path)
		}
	}
	slices.Sort(paths)
	f.check(f.ready(f.expand(paths), waits), waits, false)
}

// expand replaces folders by the manifests that are or were in them.
//
// Folders that are gone come first, also those without an event so far: the kernel
// has one watch for a folder. Forgetting its old name after watching its new one
// would end that watch.
func (f *Folder) expand(paths []string) []string {
	var files, folders []string
	for _, path := range append(paths, f.tree.gone(paths)...) {
		f.tree.mark(path)
		info, err := os.Stat(path)
		isFolder := err == nil && info.IsDir()
		if f.tree.has(path) {
			if err != nil && isLink(path) {
				f.journal.set(path, Problem{Reason: "a link to a folder that does not exist", Effect: stays})
				continue
			}
			f.tree.forget(path)
			files = append(files, f.state.under(path)...)
			if !isFolder {
				f.journal.set(path)
			}
		}
		if isFolder {
			folders = append(folders, path)
		}
		if isManifest(filepath.Base(path)) {
			files = append(files, path)
		}
	}
	for _, path := range folders {
		found, bad := f.tree.add(path)
		files = append(files, found...)
		f.reportFolders(bad)
	}
	return files
}

// check reads files and delivers changes; the first time also none. An empty file
// that is not sure is checked again later.
func (f *Folder) check(files []string, waits map[string]wait, first bool) {
	slices.Sort(files)
	files = slices.Compact(files)
	readings := make([]reading, len(files))
	manifest.Parallel(len(files), func(i int) { readings[i] = load(files[i], f.state.hash(files[i])) })

	// If the folder itself is gone, its files are not removed.
	removing := slices.ContainsFunc(readings, func(r reading) bool { return r.gone }) && f.present()
	for _, r := range readings {
		switch {
		case r.gone:
			if removing {
				f.state.remove(r.path)
			}
		case r.same:
		case !first && !waits[r.path].sure && !isPlaced(r.path, waits) && isUnsettled(r.path):
			// It was written while it was read.
			f.await(r.path, time.Now(), false)
		case r.empty && !waits[r.path].sure && f.state.holds(r.path):
			now := time.Now()
			f.waiting[r.path] = wait{since: now, due: now.Add(emptyTimeout), sure: true}
		default:
			f.state.put(r.path, r.hash, r.content)
		}
	}
	changes, problems := f.state.flush()
	if first || len(changes) > 0 {
		f.deliver(changes)
	}
	for path, now := range problems {
		f.journal.set(path, now...)
	}
	f.absolve()
	f.journal.flush()
}

// absolve removes the problems of folders that are gone. The state handles those
// of files.
func (f *Folder) absolve() {
	for path := range f.journal.now {
		if path == f.tree.root || f.state.files[path] != nil {
			continue
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			f.journal.set(path)
		}
	}
}

// reportFolders reports the flaws of folders, nil for none.
func (f *Folder) reportFolders(folders map[string]*manifest.Flaw) {
	for path, wrong := range folders {
		if wrong == nil {
			f.journal.set(path)
		} else {
			f.journal.set(path, wrong.Problem(notEntered))
		}
	}
}

// present reports whether the folder is the one that is watched.
func (f *Folder) present() bool {
	info, err := statFolder(f.tree.root)
	return err == nil && f.info != nil && os.SameFile(info, f.info)
}

// look reads the folder again if it is not the same one as before.
func (f *Folder) look() {
	if !f.present() {
		f.reenter()
	}
}

// reenter reads the whole folder again. While it can't be read, the last
// state stays.
func (f *Folder) reenter() {
	files, err := f.enter()
	if err != nil {
		f.info = nil
		f.journal.set(f.tree.root, Problem{Reason: "the folder can't be read: " + err.Error(), Effect: "its last state is served"})
		f.journal.flush()
		return
	}
	f.check(f.ready(files, nil), nil, false)
}
