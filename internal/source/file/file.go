// Package file is the source that reads a folder of Kubernetes manifests and
// watches it for changes.
//
// It knows files and folders; package manifest decodes them. It does not
// interpret the objects.
//
// It delivers objects in the form of a current cluster: Ingresses and
// IngressClasses of old versions are converted, with a Problem, and Endpoints
// become EndpointSlices for Services that have none.
//
// Manifests are the files *.yaml, *.yml and *.json in the folder and in folders
// below it, except those whose name begins with a dot. Symbolic links are
// followed. Updates of a mounted ConfigMap, by the link "..data", are noticed;
// other changes of a link's target outside the folder are not. A folder that
// can be reached by two paths is watched under one of them.
//
// A file that was renamed into its place is read at once. Any other is read when it
// has not been written for a while: its last objects stay while it is half-written.
//
// If a file can't be read, its last objects stay.
package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/internal/source"
)

// A Folder is a folder of manifests that is watched.
type Folder struct {
	tree    *tree
	state   *state
	journal *journal
	waiting map[string]wait
	deliver func([]source.Change)
	// renamed: the last event was the first one of a rename.
	renamed bool
	// info is the folder that is watched, nil if it is gone.
	info os.FileInfo
}

// New takes the path of a folder, which must exist, and a function. If the
// problems of files or folders change, the function is called with all current
// problems of each of these, by path; with none if none are left.
func New(path string, report func(map[string][]Problem)) (*Folder, error) {
	path = filepath.Clean(path)
	if _, err := statFolder(path); err != nil {
		return nil, fmt.Errorf("manifests folder: %w", err)
	}
	return &Folder{
		tree: newTree(path), state: newState(), journal: newJournal(report), waiting: make(map[string]wait),
	}, nil
}

func statFolder(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", path)
	}
	return info, nil
}

// Run must be called once only. It delivers all objects, even if there are none,
// and then each change, until ctx ends. deliver and the function for problems are
// called from this goroutine; the problems of a batch are reported after it.
//
// Run fails if the folder can't be read at the start, or if the watch fails. If
// the folder is deleted later, its last state is served. It is read again within a
// second of its return.
func (f *Folder) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	watcher, err := fsnotify.NewBufferedWatcher(queued)
	if err != nil {
		return fmt.Errorf("watch manifests folder: %w", err)
	}
	defer watcher.Close()
	f.tree.watcher, f.deliver = watcher, func(changes []source.Change) { deliver(ctx, changes) }
	files, err := f.enter()
	if err != nil {
		return fmt.Errorf("read manifests folder: %w", err)
	}
	f.check(files, nil, true)
	if err := f.watch(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("watch manifests folder: %w", err)
	}
	return nil
}

// Files are the paths of all files that define an object, in order. The object is
// named as for Once.Place. Files may be called while Run runs, from any
// goroutine.
func (f *Folder) Files(object string) []string { return f.state.filesOf(object) }

func (s *state) filesOf(object string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k, _ := s.named(object)
	return slices.Clone(s.holders[k])
}
