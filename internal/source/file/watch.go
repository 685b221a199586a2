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

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file/manifest"
)

const (
	// debounce collects the events of one operation, such as a rename within the
	// folder or an exchange of files.
	debounce = time.Millisecond
	// quiet is how long a file must be unchanged before it is read, busy is the
	// longest wait for that.
	quiet = 5 * time.Millisecond
	busy  = 200 * time.Millisecond
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
}

// A watch is a folder that is watched.
type watch struct {
	tree    *tree
	state   *state
	journal *journal
	waiting map[string]wait
	deliver func([]source.Change)
	// info is the folder that is watched, nil if it is gone.
	info os.FileInfo
}

// newWatch makes a watch, which open starts. Its watcher must be closed.
func newWatch(root string, state *state, report func(map[string][]Problem), deliver func([]source.Change)) (*watch, error) {
	watcher, err := fsnotify.NewBufferedWatcher(queued)
	if err != nil {
		return nil, err
	}
	return &watch{
		tree:    &tree{root: root, watcher: watcher, links: make(map[string]map[string]bool)},
		state:   state,
		journal: newJournal(report),
		waiting: make(map[string]wait),
		deliver: deliver,
	}, nil
}

// open reads the whole folder and delivers it.
func (w *watch) open() error {
	files, err := w.enter()
	if err != nil {
		return err
	}
	w.check(files, nil, true)
	return nil
}

// enter watches the folder again and lists the files to read: those that exist
// and those that existed before.
func (w *watch) enter() ([]string, error) {
	root := w.tree.root
	info, err := statFolder(root)
	if err != nil {
		return nil, reason(err)
	}
	w.tree.forget(root)
	files, bad := w.tree.add(root)
	if wrong := bad[root]; wrong != nil {
		return nil, errors.New(wrong.Reason)
	}
	w.info = info
	w.reportFolders(bad)
	return append(files, w.state.under(root)...), nil
}

// run handles events until ctx ends.
func (w *watch) run(ctx context.Context) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-w.tree.watcher.Events:
			if !ok {
				return errors.New("no more events")
			}
			w.note(ev, time.Now())
		case err, ok := <-w.tree.watcher.Errors:
			if !ok {
				return errors.New("no more events")
			}
			// Events are lost, by an overflow or an error: the whole folder must
			// be read.
			w.reportLost(err)
			w.reenter()
		case <-ticker.C:
			w.look()
		case <-timer.C:
		}
		w.drain()
		w.handle(time.Now())
		if due, ok := w.next(); ok {
			timer.Reset(max(time.Until(due), 0))
		}
	}
}

// reportLost reports an error of the watcher, except an overflow.
func (w *watch) reportLost(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		w.journal.set(w.tree.root, Problem{Reason: "events were lost: " + err.Error(), Effect: "the folder is read again"})
		w.journal.flush()
	}
}

// drain notes all events in the queue.
func (w *watch) drain() {
	for {
		select {
		case ev, ok := <-w.tree.watcher.Events:
			if !ok {
				return
			}
			w.note(ev, time.Now())
		default:
			return
		}
	}
}

// note decides when the path of an event is checked.
func (w *watch) note(ev fsnotify.Event, now time.Time) {
	path := ev.Name
	folder, name := filepath.Split(path)
	switch {
	case path == w.tree.root:
		if ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
			w.info = nil
			w.look()
		}
	case strings.HasPrefix(name, ".."):
		for link := range w.tree.links[filepath.Clean(folder)] {
			w.await(link, now, debounce)
		}
	case isHidden(name):
	case ev.Op == fsnotify.Chmod:
		// Access may have been granted. Times and links don't matter.
		if w.journal.has(path) {
			w.await(path, now, debounce)
		}
	case !ev.Has(fsnotify.Write) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename):
		w.await(path, now, debounce)
	case isManifest(name):
		w.await(path, now, quiet)
	}
}

// await schedules a check of a path after a delay.
func (w *watch) await(path string, now time.Time, delay time.Duration) {
	old, ok := w.waiting[path]
	if !ok || old.sure {
		old.since, old.due = now, now
	}
	due := now.Add(delay)
	if last := old.since.Add(busy); due.After(last) {
		due = last
	}
	if old.due.After(due) {
		due = old.due
	}
	w.waiting[path] = wait{since: old.since, due: due}
}

// next is when the next path must be checked.
func (w *watch) next() (due time.Time, ok bool) {
	for _, p := range w.waiting {
		if !ok || p.due.Before(due) {
			due, ok = p.due, true
		}
	}
	return due, ok
}

// handle checks all paths that are due, and those that are due soon, since they
// may belong to the same operation.
func (w *watch) handle(now time.Time) {
	if due, ok := w.next(); !ok || due.After(now) {
		return
	}
	var paths []string
	sure := make(map[string]bool)
	for path, p := range w.waiting {
		if !p.due.After(now.Add(debounce / 2)) {
			paths = append(paths, path)
			sure[path] = p.sure
			delete(w.waiting, path)
		}
	}
	slices.Sort(paths)
	w.check(w.expand(paths), sure, false)
}

// expand replaces folders by the manifests that are or were in them.
//
// Folders that are gone come first, also those without an event so far: the kernel
// has one watch for a folder. Forgetting its old name after watching its new one
// would end that watch.
func (w *watch) expand(paths []string) []string {
	var files, folders []string
	for _, path := range append(paths, w.tree.gone(paths)...) {
		w.tree.mark(path)
		info, err := os.Stat(path)
		isFolder := err == nil && info.IsDir()
		if w.tree.has(path) {
			if err != nil && isLink(path) {
				w.journal.set(path, Problem{Reason: "a link to a folder that does not exist", Effect: stays})
				continue
			}
			w.tree.forget(path)
			files = append(files, w.state.under(path)...)
			if !isFolder {
				w.journal.set(path)
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
		found, bad := w.tree.add(path)
		files = append(files, found...)
		w.reportFolders(bad)
	}
	return files
}

// check reads files and delivers changes; the first time also none. An empty file
// that is not sure is checked again later.
func (w *watch) check(files []string, sure map[string]bool, first bool) {
	slices.Sort(files)
	files = slices.Compact(files)
	readings := make([]reading, len(files))
	manifest.Parallel(len(files), func(i int) { readings[i] = load(files[i], w.state.hash(files[i])) })

	// If the folder itself is gone, its files are not removed.
	removing := slices.ContainsFunc(readings, func(r reading) bool { return r.gone }) && w.present()
	for _, r := range readings {
		switch {
		case r.gone:
			if removing {
				w.state.remove(r.path)
			}
		case r.same:
		case r.empty && !sure[r.path] && w.state.holds(r.path):
			now := time.Now()
			w.waiting[r.path] = wait{since: now, due: now.Add(emptyTimeout), sure: true}
		default:
			w.state.put(r.path, r.hash, r.content)
		}
	}
	changes, problems := w.state.flush()
	if first || len(changes) > 0 {
		w.deliver(changes)
	}
	for path, now := range problems {
		w.journal.set(path, now...)
	}
	w.absolve()
	w.journal.flush()
}

// absolve removes the problems of folders that are gone. The state handles those
// of files.
func (w *watch) absolve() {
	for path := range w.journal.now {
		if path == w.tree.root || w.state.files[path] != nil {
			continue
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			w.journal.set(path)
		}
	}
}

// reportFolders reports the flaws of folders, nil for none.
func (w *watch) reportFolders(folders map[string]*manifest.Flaw) {
	for path, wrong := range folders {
		if wrong == nil {
			w.journal.set(path)
		} else {
			w.journal.set(path, wrong.Problem(notEntered))
		}
	}
}

// present reports whether the folder is the one that is watched.
func (w *watch) present() bool {
	info, err := statFolder(w.tree.root)
	return err == nil && w.info != nil && os.SameFile(info, w.info)
}

// look reads the folder again if it is not the same one as before.
func (w *watch) look() {
	if !w.present() {
		w.reenter()
	}
}

// reenter reads the whole folder again. While it can't be read, the last
// state stays.
func (w *watch) reenter() {
	files, err := w.enter()
	if err != nil {
		w.info = nil
		w.journal.set(w.tree.root, Problem{Reason: "the folder can't be read: " + err.Error(), Effect: "its last state stays"})
		w.journal.flush()
		return
	}
	w.check(files, nil, false)
}
