package file

import (
	"cmp"
	"slices"
	"strconv"
)

// A Problem is something in the folder that can't be used. What was read
// there before stays as it was.
type Problem struct {
	// Path is the file or folder.
	Path string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Reason says what is wrong; it is empty when Solved.
	Reason string
	// Solved says that Path, which had problems, has none any more.
	Solved bool
}

// String is the problem as one line, "file:line: reason".
func (p Problem) String() string {
	switch {
	case p.Solved:
		return p.Path + " is fine again"
	case p.Line > 0:
		return p.Path + ":" + strconv.Itoa(p.Line) + ": " + p.Reason
	}
	return p.Path + ": " + p.Reason
}

// A flaw is a problem of a file that is known from elsewhere.
type flaw struct {
	line   int
	reason string
}

// A journal remembers what was told of each path, so that nothing is told
// twice.
type journal struct {
	report func(Problem)
	told   map[string][]flaw
}

// has says whether path has problems.
func (j *journal) has(path string) bool { return len(j.told[path]) > 0 }

// set tells what is new among the problems that path has now, or that none
// are left.
func (j *journal) set(path string, now []flaw) {
	before := j.told[path]
	if len(now) == 0 {
		if len(before) > 0 {
			delete(j.told, path)
			j.report(Problem{Path: path, Solved: true})
		}
		return
	}
	now = slices.Clone(now)
	slices.SortFunc(now, func(a, b flaw) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.reason, b.reason))
	})
	now = slices.Compact(now)
	known := make(map[flaw]bool, len(before))
	for _, f := range before {
		known[f] = true
	}
	j.told[path] = now
	for _, f := range now {
		if !known[f] {
			j.report(Problem{Path: path, Line: f.line, Reason: f.reason})
		}
	}
}

// forget drops what was told of a path that is gone.
func (j *journal) forget(path string) { delete(j.told, path) }
