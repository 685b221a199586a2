package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file/manifest"
)

// Once is the content of a folder or a file that was read once.
type Once struct {
	// Changes are all objects, as Folder.Run delivers them.
	Changes []source.Change
	// Problems has those of each file and folder that has any, by path.
	Problems map[string][]Problem

	state *state
	// opened has the text of the objects of files that were read again.
	opened map[string]map[manifest.Key]*manifest.Text
}

// Read reads a folder, as New does, or one file of any name, and does not watch
// it. It fails if the path can't be read; the Problems are those of its content.
func Read(path string) (*Once, error) {
	path = filepath.Clean(path)
	files, bad, err := listing(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	slices.Sort(files)
	readings := make([]reading, len(files))
	manifest.Parallel(len(files), func(i int) { readings[i] = load(files[i], hash{}) })

	o := &Once{state: newState(), opened: make(map[string]map[manifest.Key]*manifest.Text)}
	for _, r := range readings {
		if !r.gone {
			o.state.put(r.path, r.hash, r.content)
		}
	}
	var problems map[string][]Problem
	o.Changes, problems = o.state.flush()
	j := newJournal(nil)
	for path, now := range problems {
		j.set(path, now...)
	}
	for path, wrong := range bad {
		if wrong != nil {
			j.set(path, wrong.Problem(notEntered))
		}
	}
	o.Problems = j.now
	return o, nil
}

// listing returns the files to read, and the flaws of folders.
func listing(path string) (files []string, bad map[string]*manifest.Flaw, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		if _, err := read(path); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		return []string{path}, nil, nil
	}
	files, bad = newTree(path).add(path)
	if wrong := bad[path]; wrong != nil {
		return nil, nil, errors.New(path + ": " + wrong.Reason)
	}
	return files, bad, nil
}

// Files are the paths of all files that define an object, in order. The object is
// named as for Place.
func (o *Once) Files(object string) []string { return o.state.filesOf(object) }

// A Place is a line of a file, which counts from 1.
type Place struct {
	Path string
	Line int
}

// Place is the line of a field of an object, or of the innermost field around it
// that the file has, or else of the object. It is false for an unknown object.
//
// The object is named "kind/namespace/name" in lower case, without a namespace
// where it has none. The field is a path such as "spec.rules[0].host", the whole
// name of an annotation, or the key of a ConfigMap.
//
// The first call for a file reads it again: texts are kept only if they are
// needed.
func (o *Once) Place(object, field string) (Place, bool) {
	k, ok := o.state.named(object)
	if !ok {
		return Place{}, false
	}
	path := o.state.holders[k][0]
	place := Place{path, max(o.state.files[path].objects[k].Line, 1)}
	opened, known := o.opened[path]
	if !known {
		opened = open(path)
		o.opened[path] = opened
	}
	if t, ok := opened[k]; ok {
		place.Line = t.LineOf(field)
	}
	return place, true
}

// named is the key of a name, and whether a file defines such an object.
func (s *state) named(object string) (manifest.Key, bool) {
	kinds := []string{"Ingress", "IngressClass", "Service", "EndpointSlice", "Secret", "ConfigMap", "Namespace"}
	kind, name, _ := strings.Cut(object, "/")
	i := slices.IndexFunc(kinds, func(k string) bool { return strings.EqualFold(k, kind) })
	if i < 0 {
		return manifest.Key{}, false
	}
	k := manifest.Key{Kind: kinds[i], Name: name}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		k.Namespace, k.Name = namespace, rest
	}
	return k, len(s.holders[k]) > 0
}

// open locates the objects of a file. It returns none for a file that can't be
// read any more: the lines on which its objects begin are known already.
func open(path string) map[manifest.Key]*manifest.Text {
	data, err := read(path)
	if err != nil {
		return nil
	}
	return manifest.Locate(data)
}
