package manifest

import (
	"bytes"
	"encoding/json"
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
		return []step{{name: "data"}, {name: field}}
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
	parts map[int][]span
	// breaks are the offsets of all line ends, nil until they are needed.
	breaks []int
}

func newText(v value) *Text { return &Text{value: v, parts: make(map[int][]span)} }

// Locate returns the objects of a file with their text, the first one where
// the file defines an object twice.
func Locate(data []byte) map[Key]*Text {
	all, _ := values(data)
	found := make([]*Object, len(all))
	Parallel(len(all), func(i int) { found[i], _ = all[i].decode() })
	first := make(map[Key]*Text, len(all))
	for i, o := range found {
		if o == nil {
			continue
		}
		if _, twice := first[o.Key]; !twice {
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
	at := t.offset()
	found := at
	for _, s := range steps {
		name, part, ok := t.follow(at, s)
		if !ok {
			name, part, ok = t.follow(at, step{name: oldName(s.name), index: s.index})
		}
		if !ok {
			break
		}
		found, at = name, part
	}
	if t.breaks == nil {
		t.breaks = breaksOf(t.json)
	}
	before, _ := slices.BinarySearch(t.breaks, found)
	return min(t.line+before, t.last)
}

// breaksOf are the offsets of line ends; the list is never nil.
func breaksOf(json []byte) []int {
	breaks := make([]int, 0, bytes.Count(json, []byte("\n")))
	for i, c := range json {
		if c == '\n' {
			breaks = append(breaks, i)
		}
	}
	return breaks
}

// follow takes a step from the value at an offset. It returns the offsets of the
// name and of the part.
func (t *Text) follow(at int, s step) (name, part int, ok bool) {
	if at >= len(t.json) {
		return 0, 0, false
	}
	switch c := t.json[at]; {
	case s.name == "" && c == '[':
		parts := t.partsAt(at)
		if s.index < 0 || s.index >= len(parts) {
			return 0, 0, false
		}
		return parts[s.index].from, parts[s.index].from, true
	case s.name != "" && c == '{':
		members := t.partsAt(at)
		for i := 0; i+1 < len(members); i += 2 {
			// The last one of two members with the same name is used, as in the decoder.
			if isName(members[i].of(t.json), s.name) {
				name, part, ok = members[i].from, members[i+1].from, true
			}
		}
	}
	return name, part, ok
}

func (t *Text) partsAt(at int) []span {
	parts, known := t.parts[at]
	if !known {
		parts = jsonParts(t.json, at)
		t.parts[at] = parts
	}
	return parts
}

// isName reports whether a JSON string is the name.
func isName(text []byte, name string) bool {
	if bytes.IndexByte(text, '\\') < 0 && len(text) >= 2 {
		return string(text[1:len(text)-1]) == name
	}
	var plain string
	return json.Unmarshal(text, &plain) == nil && plain == name
}
