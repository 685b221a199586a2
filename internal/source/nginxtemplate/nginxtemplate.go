// Package nginxtemplate reads the administrator's template of nginx.conf, and looks for changes of it.
//
// It does not know what is in it.
package nginxtemplate

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// maxLength bounds what is read. A longer template is refused by who parses it.
const maxLength = 1<<20 + 1

// A File is the template's. Its methods must not be called by two goroutines at once.
type File struct {
	path string
	// look is the interval of looks at the file. A version counts once it was seen in two of them: a
	// file may be written in several steps.
	look time.Duration
	log  *slog.Logger
	// known was delivered, and seen was there at the last look.
	known, seen string
	failed      string
}

// look is the usual interval.
const look = 500 * time.Millisecond

// Open reads the file, which may be missing.
func Open(path string, log *slog.Logger) *File {
	f := &File{path: path, look: look, log: log}
	f.seen = f.read()
	f.known = f.seen
	return f
}

// Object is the template as it was read last, nil if there is none.
func (f *File) Object() *source.Template {
	if f.known == "" {
		return nil
	}
	return &source.Template{ObjectMeta: metav1.ObjectMeta{Name: f.path}, Text: f.known}
}

// Run delivers changes until ctx ends. It delivers nothing at first: see Object.
func (f *File) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	ticker := time.NewTicker(f.look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		was := f.seen
		if f.seen = f.read(); f.seen != was || f.seen == f.known {
			continue
		}
		f.known = f.seen
		change := source.Change{Object: f.Object(), Deleted: f.known == ""}
		if change.Deleted {
			change.Object = &source.Template{ObjectMeta: metav1.ObjectMeta{Name: f.path}}
		}
		deliver(ctx, []source.Change{change})
	}
}

// read returns the text, a line end for an empty file, and nothing where there is no file. A file that can't be
// read is as it was.
func (f *File) read() string {
	text, err := readBounded(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if f.failed != err.Error() {
			f.failed = err.Error()
			f.log.Warn("the template can't be read", "error", err, "effect", "it stays as it was read last")
		}
		return f.known
	}
	f.failed = ""
	if err == nil && text == "" {
		return "\n"
	}
	return text
}

func readBounded(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxLength))
	return string(text), err
}
