package file

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/internal/source/file/manifest"
)

// A Problem is a part of the folder that can't be used, or an object of an old
// version, which is used.
type Problem = manifest.Problem

// The effects of problems.
const (
	// stays: the file had objects that can't be found in it now.
	stays = "its last valid content is still used"
	// unread: no object of the file was lost.
	unread = "the part that can't be read is not served"
	// vain: another place defines the object.
	vain = "this definition is not used"
	// notEntered is about a folder. Files of it that were read before have
	// problems of their own.
	notEntered = "its files are not read"
)

// A journal remembers the problems of each path, and reports changes.
type journal struct {
	report  func(map[string][]Problem)
	now     map[string][]Problem
	changed map[string][]Problem
}

func newJournal(report func(map[string][]Problem)) *journal {
	return &journal{report: report, now: make(map[string][]Problem), changed: make(map[string][]Problem)}
}

// has reports whether path has problems.
func (j *journal) has(path string) bool { return len(j.now[path]) > 0 }

// set replaces the problems of path. Flush reports them.
func (j *journal) set(path string, now ...Problem) {
	slices.SortFunc(now, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Object, b.Object))
	})
	now = slices.Compact(now)
	if slices.Equal(now, j.now[path]) {
		return
	}
	j.changed[path] = now
	if j.now[path] = now; len(now) == 0 {
		delete(j.now, path)
	}
}

// flush reports the problems of all paths whose problems have changed.
func (j *journal) flush() {
	if len(j.changed) == 0 {
		return
	}
	j.report(j.changed)
	j.changed = make(map[string][]Problem)
}
