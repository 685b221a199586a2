package manifest

import (
	"slices"
	"strconv"
	"strings"
)

// A step leads from a value to a part of it: to a member of an object or, if
// the name is empty, to an element of an array.
type step struct {
	name  string
	index int
}

// stepsTo is the path to a field of an object of a kind, in the notation of
// findings.
func stepsTo(kind, field string) []step {
	switch {
	case field == "":
		return nil
	case kind == "ConfigMap":
		// Fields of the ConfigMap with the options are keys alone.
		return []step{{name: "data"}, {name: strings.TrimPrefix(field, "data.")}}
	case strings.Contains(field, "/"):
		// No path has a slash; all annotations that are read have one.
		return []step{{name: "metadata"}, {name: "annotations"}, {name: field}}
	}
	var steps []step
	for part := range strings.SplitSeq(field, ".") {
		name, rest, _ := strings.Cut(part, "[")
		steps = append(steps, step{name: name})
		for text := range strings.SplitSeq(strings.TrimSuffix(rest, "]"), "][") {
			if i, err := strconv.Atoi(text); err == nil {
				steps = append(steps, step{index: i})
			}
		}
	}
	return steps
}

// oldName is what a member was called in an old version.
func oldName(name string) string {
	if name == "defaultBackend" {
		return "backend"
	}
	return name
}

// A Text is the text of an object in its file, with an index for LineOf, which may
// be called for thousands of fields of one object.
type Text struct {
	value
	// parts are those of arrays and objects, by the offset of their beginning.
	parts map[int][]part
}

func newText(v value) *Text { return &Text{value: v, parts: make(map[int][]part)} }

// Locate returns the objects of a file with their text, the first one where
// the file defines an object twice.
func Locate(data []byte) map[Key]*Text {
	all, found, _ := decode(data)
	first := make(map[Key]*Text, len(all))
	for i, o := range slices.Backward(found) {
		if o != nil {
			first[o.Key] = newText(all[i])
		}
	}
	return first
}

// LineOf is the line of a field, or of the innermost field around it that the
// file has, or else of the object.
func (t *Text) LineOf(field string) int { return t.lineOf(stepsTo(t.header.Kind, field)) }

// lineOf is the line to which the steps lead, or that of the last step that
// exists. For a member of an object it is the line of its name.
func (t *Text) lineOf(steps []step) int {
	last, _ := t.find(steps)
	return t.lineAt(int64(last.at))
}

// find returns the part to which the steps lead, or that of the last step that
// exists and false.
func (t *Text) find(steps []step) (part, bool) {
	found := part{at: t.offset(), value: span{t.offset(), len(t.json)}}
	for _, s := range steps {
		next, ok := t.follow(found.value.from, s)
		if !ok {
			next, ok = t.follow(found.value.from, step{name: oldName(s.name), index: s.index})
		}
		if !ok {
			return found, false
		}
		found = next
	}
	return found, true
}

// follow takes a step from the value at an offset.
func (t *Text) follow(at int, s step) (part, bool) {
	parts, known := t.parts[at]
	if !known {
		parts = jsonParts(t.json, at)
		t.parts[at] = parts
	}
	if s.name == "" {
		if s.index < 0 || s.index >= len(parts) || t.json[at] != '[' {
			return part{}, false
		}
		return parts[s.index], true
	}
	// The last one of two members with the same name is used, as in the decoder.
	for _, p := range slices.Backward(parts) {
		if p.name == s.name {
			return p, true
		}
	}
	return part{}, false
}
