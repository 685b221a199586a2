package manifest

import (
	"bytes"
	"slices"
)

// A list is a YAML document that holds objects as the block sequence "items",
// as kubectl prints them, taken apart: its items are read one by one, most of
// them fast, and one that is broken breaks no other.
type list struct {
	// frame is the document without its items.
	frame document
	items []document
}

// cutList takes a document apart, if it looks like a list.
func (d document) cutList() (list, bool) {
	begin := behindItems(d.text)
	if begin < 0 {
		return list{}, false
	}
	var l list
	var starts []int
	indent, at, line := -1, begin, d.line+bytes.Count(d.text[:begin], []byte("\n"))
	for at < len(d.text) {
		text, _, _ := bytes.Cut(d.text[at:], []byte("\n"))
		bare := bytes.TrimLeft(text, " ")
		if own := len(text) - len(bare); len(bare) > 0 && bare[0] != '#' {
			dash := bare[0] == '-' && (len(bare) == 1 || bare[1] == ' ')
			if indent < 0 && dash {
				indent = own
			}
			if indent < 0 || own < indent || own == indent && !dash {
				break
			}
			if own == indent {
				starts = append(starts, at)
				l.items = append(l.items, document{line: line})
			}
		}
		at = min(at+len(text)+1, len(d.text))
		line++
	}
	for i, end, last := len(starts)-1, at, line-1; i >= 0; i-- {
		l.items[i].text, l.items[i].last = d.text[starts[i]:end], last
		end, last = starts[i], l.items[i].line-1
	}
	l.frame = document{text: slices.Concat(d.text[:begin-1], []byte(" []\n"), d.text[at:]), line: d.line, last: d.last}
	return l, len(starts) > 0
}

// behindItems is where the line behind "items:" begins, -1 if there is none.
func behindItems(text []byte) int {
	const name = "items:\n"
	if bytes.HasPrefix(text, []byte(name)) {
		return len(name)
	}
	if at := bytes.Index(text, []byte("\n"+name)); at >= 0 {
		return at + 1 + len(name)
	}
	return -1
}

// values gives the objects of the list. It says false if it is none.
func (l list) values() ([]value, []Flaw, bool) {
	frame, f := l.frame.value()
	if f != nil || frame.read() != nil || newObject(frame.header.APIVersion, frame.header.Kind) != nil {
		return nil, nil, false
	}
	item, isList := itemKind(frame.header.APIVersion, frame.header.Kind)
	if !isList {
		return nil, nil, true
	}
	values := make([][]value, len(l.items))
	flaws := make([][]Flaw, len(l.items))
	Parallel(len(l.items), func(i int) { values[i], flaws[i] = l.items[i].item(item) })
	return flatten(values), flatten(flaws), true
}

// item gives what is in an element of a block sequence.
func (d document) item(h header) ([]value, []Flaw) {
	d.text = bytes.Replace(d.text, []byte("-"), []byte(" "), 1)
	v, f := d.value()
	if f != nil {
		return nil, []Flaw{*f}
	}
	v.header = h
	return v.items(1)
}
