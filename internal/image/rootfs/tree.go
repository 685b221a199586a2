// Package rootfs makes the files of an image: out of Debian's packages, and with what
// their scripts would do, so that no program runs and any architecture can be made.
package rootfs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// A File is a file, directory or symbolic link of a Tree.
type File struct {
	Kind byte // tar.TypeReg, TypeDir or TypeSymlink
	Mode int64
	// User and Group own it.
	User, Group int
	Target      string // of a symbolic link
	Content     []byte
	// Ports is set if the file, a program, permits its process to listen on ports below 1024.
	Ports bool
}

// bindsPorts is the value of the extended attribute security.capability that permits
// CAP_NET_BIND_SERVICE, and does not make it effective. If it did, the kernel would not
// start the program in a container without the capability.
const bindsPorts = "\x00\x00\x00\x02" + "\x00\x04\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// A Tree holds files by path, without a slash at the begin or end. Every directory of a
// file is in it.
type Tree struct {
	files map[string]File
}

// New makes a Tree without files.
func New() *Tree { return &Tree{map[string]File{}} }

// Merge makes a Tree of several, of which later ones win.
func Merge(trees ...*Tree) *Tree {
	all := New()
	for _, t := range trees {
		maps.Copy(all.files, t.files)
	}
	return all
}

// Add adds a file, and the directories that it needs. Symbolic links in its path are
// followed, as a package manager does: /lib is /usr/lib.
func (t *Tree) Add(name string, f File) error {
	dir, base := path.Split(path.Clean("/" + name))
	dir, err := t.follow(dir)
	if err != nil {
		return fmt.Errorf("add /%s: %w", name, err)
	}
	name = strings.TrimPrefix(path.Join(dir, base), "/")
	if old, ok := t.files[name]; ok && f.Kind == tar.TypeDir && old.Kind != tar.TypeReg {
		// A package may name a directory that another one has made, or a link to one.
		return nil
	}
	t.files[name] = f
	return nil
}

// maxLinks is how many symbolic links a path may have.
const maxLinks = 40

// follow returns a directory without symbolic links, and makes what is missing of it.
func (t *Tree) follow(dir string) (string, error) {
	at, rest := "/", strings.Split(strings.Trim(dir, "/"), "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		name := strings.TrimPrefix(next, "/")
		if name == "" {
			continue
		}
		switch f, ok := t.files[name]; {
		case !ok:
			t.files[name] = File{Kind: tar.TypeDir, Mode: 0o755}
			at = next
		case f.Kind == tar.TypeDir:
			at = next
		case f.Kind == tar.TypeSymlink:
			if links++; links > maxLinks {
				return "", fmt.Errorf("too many symbolic links in %s", dir)
			}
			if path.IsAbs(f.Target) {
				at = "/"
			}
			rest = append(strings.Split(strings.Trim(f.Target, "/"), "/"), rest...)
		default:
			return "", fmt.Errorf("/%s is a file", name)
		}
	}
	return at, nil
}

// Open returns a file by its path, symbolic links followed.
func (t *Tree) Open(name string) (File, error) {
	for range maxLinks {
		dir, base := path.Split(path.Clean("/" + name))
		at, err := t.lookup(dir)
		if err != nil {
			return File{}, err
		}
		f, ok := t.files[strings.TrimPrefix(path.Join(at, base), "/")]
		if !ok {
			return File{}, fmt.Errorf("no file %s", name)
		}
		if f.Kind != tar.TypeSymlink {
			return f, nil
		}
		if name = f.Target; !path.IsAbs(name) {
			name = path.Join(at, name)
		}
	}
	return File{}, fmt.Errorf("too many symbolic links in %s", name)
}

// Move gives a file another path.
func (t *Tree) Move(from, to string) error {
	f, ok := t.files[from]
	if !ok {
		return fmt.Errorf("no file /%s", from)
	}
	delete(t.files, from)
	return t.Add(to, f)
}

// lookup is follow, and makes nothing.
func (t *Tree) lookup(dir string) (string, error) {
	if _, ok := t.files[strings.Trim(dir, "/")]; ok || dir == "/" {
		return t.follow(dir)
	}
	parent, base := path.Split(strings.TrimSuffix(dir, "/"))
	at, err := t.lookup(parent)
	if err != nil {
		return "", err
	}
	if _, ok := t.files[strings.TrimPrefix(path.Join(at, base), "/")]; !ok {
		return "", fmt.Errorf("no directory %s", dir)
	}
	return t.follow(path.Join(at, base))
}

// Paths are those of all files, sorted.
func (t *Tree) Paths() []string { return slices.Sorted(maps.Keys(t.files)) }

// Size is the size of all files, in bytes.
func (t *Tree) Size() (bytes int64) {
	for _, f := range t.files {
		bytes += int64(len(f.Content))
	}
	return bytes
}

// Tar writes the files, sorted, as a layer of an image. All have the same time.
func (t *Tree) Tar(to io.Writer, at time.Time) error {
	archive := tar.NewWriter(to)
	for _, name := range t.Paths() {
		f := t.files[name]
		header := &tar.Header{
			Typeflag: f.Kind, Name: name, Mode: f.Mode, Uid: f.User, Gid: f.Group, Linkname: f.Target,
			Size: int64(len(f.Content)), ModTime: at, Format: tar.FormatPAX,
		}
		if f.Kind == tar.TypeDir {
			header.Name += "/"
		}
		if f.Ports {
			header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": bindsPorts}
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write /%s: %w", name, err)
		}
		if _, err := io.Copy(archive, bytes.NewReader(f.Content)); err != nil {
			return fmt.Errorf("write /%s: %w", name, err)
		}
	}
	return archive.Close()
}
