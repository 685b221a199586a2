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
// Manifests are the files *.yaml, *.yml and *.json in the folder and in
// folders below it, save those whose name begins with a dot. Symbolic links
// are followed, and the way in which Kubernetes exchanges the files of a
// mounted ConfigMap (by the link "..data") is understood; apart from that, a
// change of a link's target outside the folder is not seen. A folder that can
// be reached by two paths is watched under one of them.
//
// Where something can't be read, what was read there before stays.
package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/headgate/headgate/internal/source"
)

// A Folder is a folder of manifests.
type Folder struct {
	path   string
	report func(map[string][]Problem)
	state  *state
}

// New takes the path of a folder, which must exist, and the function that
// problems are told to. Whenever files or folders have other problems than
// before, it gets all that each of these has now, by path: none where none are
// left.
func New(path string, report func(map[string][]Problem)) (*Folder, error) {
	path = filepath.Clean(path)
	if _, err := statFolder(path); err != nil {
		return nil, fmt.Errorf("manifests folder: %w", err)
	}
	return &Folder{path: path, report: report, state: newState()}, nil
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

// Run must be called once only. It delivers what is in the folder, even if that is nothing, and then each
// change, until ctx ends. deliver and the function for problems are called
// from this goroutine; the problems of a batch are told after it.
//
// Run fails if the folder can't be read at the start or watching it breaks
// down. When the folder goes away later, its last state stays, and what is
// there is read again within a second of its return.
func (f *Folder) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	w, err := newWatch(f.path, f.state, f.report, func(changes []source.Change) { deliver(ctx, changes) })
	if err != nil {
		return fmt.Errorf("watch manifests folder: %w", err)
	}
	defer w.tree.watcher.Close()
	if err := w.open(); err != nil {
		return fmt.Errorf("read manifests folder: %w", err)
	}
	if err := w.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("watch manifests folder: %w", err)
	}
	return nil
}

// Files are the paths of all files that hold an object, in order. The object is
// named as for Once.Place. Files may be called while Run runs, from any
// goroutine.
func (f *Folder) Files(object string) []string { return f.state.filesOf(object) }

func (s *state) filesOf(object string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k, _ := s.named(object)
	return slices.Clone(s.holders[k])
}
