package file

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/headgate/headgate/internal/source/file/manifest"
)

// maxSize is the largest file that is read, in bytes.
const maxSize = 256 << 20

// isManifest reports by the name whether a file is read.
func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) && !isHidden(name)
}

// isHidden reports by the name whether a file or folder is ignored.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

// A reading is the result of reading a file.
type reading struct {
	path string
	// gone: the file does not exist any more.
	gone bool
	// same: the content is unchanged.
	same bool
	// empty: the file is empty.
	empty   bool
	hash    hash
	content manifest.Content
}

// load reads a file, and decodes it if its hash has changed.
func load(path string, known hash) reading {
	data, err := read(path)
	switch {
	case errors.Is(err, errFolder):
		return reading{path: path, gone: true}
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return reading{path: path, gone: true}
		}
		err = errors.New("a link to a file that does not exist")
		fallthrough
	case err != nil:
		return reading{path: path, content: manifest.Content{Flaws: []manifest.Flaw{{Reason: err.Error()}}}}
	}
	r := reading{path: path, hash: sha256.Sum256(data)}
	if r.hash == known {
		r.same = true
		return r
	}
	r.empty = len(bytes.TrimSpace(data)) == 0
	r.content = manifest.Decode(data)
	return r
}

var errFolder = errors.New("is a folder")

// read reads a regular file of a bounded size. It does not block if the file is a
// pipe.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, reason(err)
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxSize:
		return nil, tooLarge()
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(data) > maxSize {
		return nil, tooLarge()
	}
	return data, nil
}

func tooLarge() error { return fmt.Errorf("larger than %d MiB", maxSize>>20) }

// reason removes the path from an error, since problems name it.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return err
}
