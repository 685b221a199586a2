package file

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// A Problem is something in the folder that can't be used, or a notice about
// an object. Where something can't be used, what was read there before stays
// as it was.
type Problem struct {
	// Path is the file or folder.
	Path string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Reason says what is wrong; it is empty when Solved.
	Reason string
	// Notice is about an object that is used, nil if something can't be.
	Notice *Notice
	// Solved says that Path, which had problems, has none any more. Notices
	// are no part of that: each is solved by itself.
	Solved bool
}

// A Notice is about an object of an old version, which is delivered as one of
// today's. One about the same object in the same file takes the place of the
// one before.
type Notice struct {
	// Object is the object in the form "ingress/namespace/name".
	Object string
	// Field is the field that the notice is about.
	Field string
	// Message says what is wrong, and has the object in the new form as YAML.
	Message string
	// Effect says what becomes of the object.
	Effect string
}

// String is the problem as "file:line: reason".
func (p Problem) String() string {
	switch {
	case p.Solved && p.Notice != nil:
		return p.Path + ": " + p.Notice.Object + " is of no old version any more"
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

// A notice is one about an object that begins in a line.
type notice struct {
	line int
	Notice
}

// A verdict is all that there is to say of a file.
type verdict struct {
	flaws   []flaw
	notices []notice
}

// A journal remembers what was told of each path, so that nothing is told
// twice.
type journal struct {
	report  func(Problem)
	told    map[string][]flaw
	noticed map[string]map[Notice]bool
}

func newJournal(report func(Problem)) *journal {
	return &journal{report: report, told: make(map[string][]flaw), noticed: make(map[string]map[Notice]bool)}
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

// setNotices tells which of the notices that path has now are new, wherever
// they stand, and which are no more.
func (j *journal) setNotices(path string, now []notice) {
	before := j.noticed[path]
	if len(before) == 0 && len(now) == 0 {
		return
	}
	slices.SortFunc(now, func(a, b notice) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.Object, b.Object))
	})
	is := make(map[Notice]bool, len(now))
	objects := make(map[string]bool, len(now))
	for _, n := range now {
		is[n.Notice], objects[n.Object] = true, true
		if !before[n.Notice] {
			j.report(Problem{Path: path, Line: n.line, Reason: n.Object + ": " + n.Message, Notice: &n.Notice})
		}
	}
	gone := slices.SortedFunc(maps.Keys(before), func(a, b Notice) int { return cmp.Compare(a.Object, b.Object) })
	for _, n := range gone {
		if !objects[n.Object] {
			j.report(Problem{Path: path, Notice: &n, Solved: true})
		}
	}
	if j.noticed[path] = is; len(is) == 0 {
		delete(j.noticed, path)
	}
}

// forget drops what was told of a path that is gone, save notices, which
// are solved then.
func (j *journal) forget(path string) { delete(j.told, path) }
