// Package pemfile reads certificates and keys from files, and reads them again once they change.
//
// It looks at the times of the files whenever someone asks, so that there is nothing to watch. What
// the files are for is known by its callers.
package pemfile

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// maxSize is the maximum size of a file.
const maxSize = 1 << 20

// A Group is files that have one value together.
type Group[T any] struct {
	names         []string
	parse         func(contents [][]byte) (T, error)
	what, without string
	log           *slog.Logger

	mu sync.Mutex
	// loaded is the last value that could be read, nil without any.
	loaded *T
	// seen are the files that loaded, or an error, is from.
	seen []fs.FileInfo
	err  error
}

// New makes a Group of files whose contents, in the same order, parse reads. The log calls their value
// what ("the certificate of a server"), and says without as the effect if there is none.
func New[T any](log *slog.Logger, what, without string, parse func(contents [][]byte) (T, error), names ...string) *Group[T] {
	return &Group[T]{names: names, parse: parse, what: what, without: without, log: log}
}

// Pair is the Group of a certificate, with its chain, and its key.
func Pair(log *slog.Logger, what, without, certificate, key string) *Group[*tls.Certificate] {
	return New(log, what, without, func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		return &pair, err
	}, certificate, key)
}

// Get returns the value of the files. While they can't be read it is the last one: between the changes
// of two files they may not fit. Without any it is an error.
func (g *Group[T]) Get() (T, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refresh()
	if g.loaded == nil {
		var none T
		return none, fmt.Errorf("%s can't be read: %w", g.what, g.err)
	}
	return *g.loaded, nil
}

// refresh reads the files if they are others than before.
func (g *Group[T]) refresh() {
	now, err := g.stat()
	if err == nil && g.unchanged(now) {
		return
	}
	var value T
	if err == nil {
		value, err = g.read()
	}
	g.seen = now
	if err != nil {
		if g.err == nil || g.err.Error() != err.Error() {
			effect := "the last one is used"
			if g.loaded == nil {
				effect = g.without
			}
			g.log.Error(g.what+" can't be read", "error", err, "effect", effect)
		}
		g.err = err
		return
	}
	if g.loaded != nil || g.err != nil {
		g.log.Info(g.what+" was read again", "file", g.names[0])
	}
	g.loaded, g.err = &value, nil
}

func (g *Group[T]) stat() ([]fs.FileInfo, error) {
	var files []fs.FileInfo
	for _, name := range g.names {
		file, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("look at the file: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

func (g *Group[T]) unchanged(now []fs.FileInfo) bool {
	if g.seen == nil {
		return false
	}
	for i, a := range now {
		b := g.seen[i]
		if !os.SameFile(a, b) || !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size() {
			return false
		}
	}
	return true
}

func (g *Group[T]) read() (value T, err error) {
	var contents [][]byte
	for _, name := range g.names {
		content, err := Read(name, maxSize)
		if err != nil {
			return value, err
		}
		contents = append(contents, content)
	}
	return g.parse(contents)
}

// Read returns the content of a file that must not be larger than a number of bytes.
func Read(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("read the file %s: it has more than %d bytes", name, most)
	}
	return content, nil
}
