// Package journal keeps what an edge has received in a directory in memory, so that an edge whose
// container restarts while the control is away serves on.
//
// Private keys are among it, and must never lie on a disk. So the directory must be on a tmpfs, and is
// for its user alone. It must not know what units mean, nor how they come.
//
// What is kept is never old: either everything up to the last cut, at most without the one during
// which the process ended, or nothing. An older state may have a key, an address or a user in it that
// was removed long ago, and no probe would show it. With nothing, an edge waits for the control, is not
// ready, and others serve instead. So a file that can't be extended is emptied, and of one that is damaged
// nothing is used, not even what is before the damage.
package journal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

const (
	fileName = "units"
	// newName is the file while it is replaced.
	newName = "units.new"
	// slack is how much of the file may be of no use, besides as much as is.
	slack = 1 << 20
)

// A Journal keeps what an edge has received. It is used by one goroutine.
type Journal struct {
	dir    *directory
	log    *slog.Logger
	schema uint32
	kept   contents
	// file has what was kept, and is at its end. It is nil while there is no such file.
	file *os.File
	// compactAt is the size from which the file is compacted.
	compactAt int64
}

// Open opens the journal in a directory, which is created if the one above it is in memory, and
// locks it. What was kept with another schema, or is damaged, is dropped.
func Open(dir string, schema uint32, log *slog.Logger) (*Journal, error) {
	j := &Journal{log: log, schema: schema}
	var err error
	if j.dir, err = openDirectory(dir); err != nil {
		return nil, fmt.Errorf("open the directory for units %s (--state-dir): %w", dir, err)
	}
	if err := j.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the units in %s (--state-dir): %w", dir, err), j.Close())
	}
	return j, nil
}

func (j *Journal) open() error {
	j.kept = empty()
	// It would only take memory.
	if err := j.dir.Remove(newName); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	info, err := j.dir.Lstat(fileName)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New(fileName + " is not a file")
	}
	if j.file, err = j.dir.OpenFile(fileName, os.O_RDWR, 0); err != nil {
		return err
	}
	kept, err := read(j.file, info.Size(), j.schema)
	switch {
	case errors.Is(err, errUnusable):
		j.log.Warn("the units that were kept can't be used", "reason", err, "effect", "nothing is served before the control has sent them")
		return j.discard()
	case errors.Is(err, errUnfinished):
		j.log.Warn("the last change was not kept completely", "bytes", info.Size()-kept.size, "effect", "what was there before it is served until the control sends it")
		if err := j.file.Truncate(kept.size); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if _, err := j.file.Seek(kept.size, io.SeekStart); err != nil {
		return err
	}
	j.kept = kept
	j.setLimit(kept.live)
	return nil
}

// Load returns all that is kept, in the order of cuts. There is nothing in it if nothing was kept, or
// if that can't be used.
func (j *Journal) Load() publish.Cut {
	cut := publish.Cut{Resources: make([]wire.Resource, 0, len(j.kept.resources))}
	for _, r := range j.kept.resources {
		cut.Resources = append(cut.Resources, r)
	}
	slices.SortFunc(cut.Resources, func(a, b wire.Resource) int { return a.Key.Compare(b.Key) })
	return cut
}

// Append keeps a cut. The edge calls it with each one that it has taken, also if something in it can't
// be served, and before it says so to the control: then a restart loses nothing that the control believes to be
// there. The bytes of resources are shared, and must not change. What they refer to is not kept, since edges do
// not get it.
//
// After an error nothing is kept, until a later Append has written everything again: the directory is full,
// for example.
func (j *Journal) Append(cut publish.Cut) error {
	j.kept.apply(cut)
	if j.file != nil {
		err := j.extend(cut)
		if err == nil {
			j.compact()
			return nil
		}
		// Without its memory there may be room for what is still of use.
		if err := j.discard(); err != nil {
			return fmt.Errorf("empty the file with units that could not be extended: %w", err)
		}
		j.log.Warn("the file with units could not be extended", "error", err, "effect", "it is replaced by a new one")
	}
	if err := j.rewrite(); err != nil {
		return fmt.Errorf("keep units: %w", err)
	}
	return nil
}

func (j *Journal) extend(cut publish.Cut) error {
	if len(cut.Resources)+len(cut.Gone) == 0 {
		return nil
	}
	sum, n, err := writeCut(j.file, j.kept.sum, cut)
	if err != nil {
		return err
	}
	j.kept.sum = sum
	j.kept.size += n
	return nil
}

// compact replaces the file if most of it is of no use. The one that is there is good: without room
// for another one it goes on.
func (j *Journal) compact() {
	if j.kept.size <= j.compactAt {
		return
	}
	if err := j.rewrite(); err != nil {
		j.log.Warn("there is no room to compact the kept units", "error", err, "bytes", j.kept.size, "of use", j.kept.live)
		j.setLimit(j.kept.size)
	}
}

// setLimit has the file grow by as much as is of use, and some more, beyond a size.
func (j *Journal) setLimit(size int64) { j.compactAt = size + j.kept.live + slack }

// rewrite replaces the file by one with all that is kept, at once.
func (j *Journal) rewrite() error {
	file, err := j.dir.OpenFile(newName, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum, n, err := writeAll(file, j.schema, j.Load())
	if err == nil {
		err = j.dir.Rename(newName, fileName)
	}
	if err != nil {
		return errors.Join(err, file.Close(), j.dir.Remove(newName))
	}
	if j.file != nil {
		j.file.Close() // Nothing of it is needed.
	}
	j.file, j.kept.sum, j.kept.size = file, sum, n
	j.setLimit(n)
	return nil
}

// discard empties the file: it is not what the edge has.
func (j *Journal) discard() error {
	err := j.file.Truncate(0)
	if err != nil {
		err = j.dir.Remove(fileName)
	}
	j.file.Close() // Nothing of it is needed.
	j.file = nil
	return err
}

// Close gives the directory free. What is kept stays.
func (j *Journal) Close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.dir.Close())
}

// contents are what a file has.
type contents struct {
	resources map[unit.Key]wire.Resource
	// live is how many bytes the records of resources have.
	live int64
	// size is that of the file up to the end of its last cut, and sum is written there.
	size int64
	sum  sum
}

func empty() contents { return contents{resources: map[unit.Key]wire.Resource{}} }

func (c *contents) apply(cut publish.Cut) {
	for _, r := range cut.Resources {
		c.remove(r.Key)
		c.resources[r.Key] = wire.Resource{Key: r.Key, Version: r.Version, Bytes: r.Bytes}
		c.live += recordSize(r)
	}
	for _, key := range cut.Gone {
		c.remove(key)
	}
}

func (c *contents) remove(key unit.Key) {
	if r, found := c.resources[key]; found {
		c.live -= recordSize(r)
		delete(c.resources, key)
	}
}
