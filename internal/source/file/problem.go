package file

import (
	"cmp"
	"slices"
)

// A Problem is something in the folder that can't be used, or an object of an
// old version, which is used all the same.
type Problem struct {
	// Line counts from 1; 0 means the file or folder as a whole.
	Line int
	// Reason says what is wrong. Of an object of an old version it has the new
	// form as YAML.
	Reason string
	// Effect says what becomes of it.
	Effect string
	// Object is the object of an old version, in the form
	// "ingress/namespace/name"; empty for all other problems.
	Object string
	// Field is what is wrong of Object.
	Field string
}

// What becomes of what can't be used.
const (
	// stays: the file held objects that can't be found in it now.
	stays = "what was read there before stays"
	// unread: nothing that was there before is missed.
	unread = "what can't be read is not served"
	// vain: another place has the object.
	vain = "this one is not used"
	// notEntered is about a folder. Files of it that were read before are
	// problems of their own.
	notEntered = "its files are not read"
)

// A flaw is something that can't be used in a file or folder that is known
// from elsewhere.
type flaw struct {
	line   int
	reason string
}

func (f flaw) problem(effect string) Problem {
	return Problem{Line: f.line, Reason: f.reason, Effect: effect}
}

// A journal remembers the problems of each path, and tells them when they
// are others.
type journal struct {
	report  func(map[string][]Problem)
	now     map[string][]Problem
	changed map[string][]Problem
}

func newJournal(report func(map[string][]Problem)) *journal {
	return &journal{report: report, now: make(map[string][]Problem), changed: make(map[string][]Problem)}
}

// has says whether path has problems.
func (j *journal) has(path string) bool { return len(j.now[path]) > 0 }

// set takes all problems that path has now, to be told by flush.
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

// flush tells the problems of all paths where they changed.
func (j *journal) flush() {
	if len(j.changed) == 0 {
		return
	}
	j.report(j.changed)
	j.changed = make(map[string][]Problem)
}
