package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/internal/source/file/manifest"
)

// maxFolders bounds how deep folders may lie in each other.
const maxFolders = 64

// A tree has the folders that are watched, and the symbolic links in them.
type tree struct {
	root string
	// watcher is nil for a tree that is read once.
	watcher *fsnotify.Watcher
	// links has the visible links of each watched folder.
	links map[string]map[string]bool
}

func newTree(root string) *tree { return &tree{root: root, links: make(map[string]map[string]bool)} }

// has says whether a path is a watched folder.
func (t *tree) has(path string) bool { return t.links[path] != nil }

// add watches a folder and all below it. It returns the manifests and the flaw of
// each folder, nil for none.
func (t *tree) add(folder string) (files []string, bad map[string]*manifest.Flaw) {
	bad = make(map[string]*manifest.Flaw)
	t.walk(folder, 0, &files, bad)
	return files, bad
}

func (t *tree) walk(folder string, depth int, files *[]string, bad map[string]*manifest.Flaw) {
	// A folder without a flaw needs an entry too, which ends an earlier problem.
	bad[folder] = nil
	if depth > maxFolders || t.loops(folder) {
		bad[folder] = &manifest.Flaw{Reason: "the folder contains itself by a link, or is nested too deeply"}
		return
	}
	// Watching before listing leaves no gap in which a file could be missed.
	var err error
	act := "read"
	if t.watcher != nil {
		act = "watch"
		err = t.watcher.Add(folder)
	}
	if err == nil {
		t.links[folder] = make(map[string]bool)
		err = t.list(folder, depth, files, bad)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		bad[folder] = &manifest.Flaw{Reason: fmt.Sprintf("%s folder: %v", act, reason(err))}
	}
}

func (t *tree) list(folder string, depth int, files *[]string, bad map[string]*manifest.Flaw) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isHidden(e.Name()) {
			continue
		}
		path := filepath.Join(folder, e.Name())
		isFolder := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			t.links[folder][path] = true
			info, err := os.Stat(path)
			isFolder = err == nil && info.IsDir()
		}
		switch {
		case isFolder:
			t.walk(path, depth+1, files, bad)
		case isManifest(e.Name()):
			*files = append(*files, path)
		}
	}
	return nil
}

// gone lists the watched folders that do not exist any more, if one of the paths
// is a folder that is not watched.
func (t *tree) gone(paths []string) []string {
	if !slices.ContainsFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir() && !t.has(path)
	}) {
		return nil
	}
	var gone []string
	for folder := range t.links {
		if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) && folder != t.root {
			gone = append(gone, folder)
		}
	}
	return gone
}

// loops reports whether a folder is a link to one of those above it.
func (t *tree) loops(folder string) bool {
	if folder == t.root || !isLink(folder) {
		return false
	}
	info, err := os.Stat(folder)
	if err != nil {
		return false
	}
	for above := folder; above != t.root && above != filepath.Dir(above); {
		above = filepath.Dir(above)
		if other, err := os.Stat(above); err == nil && os.SameFile(info, other) {
			return true
		}
	}
	return false
}

// mark remembers whether a path is a link.
func (t *tree) mark(path string) {
	links := t.links[filepath.Dir(path)]
	switch {
	case links == nil:
	case isLink(path):
		links[path] = true
	default:
		delete(links, path)
	}
}

// forget stops watching a folder and those below it.
func (t *tree) forget(folder string) {
	for f := range t.links {
		if f == folder || inside(folder, f) {
			delete(t.links, f)
			// The watch ends with its folder; other errors have no effect.
			_ = t.watcher.Remove(f)
		}
	}
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
