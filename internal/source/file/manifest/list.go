package manifest

import (
	"bytes"
	"slices"
)

// A list is a YAML document with objects in the block sequence "items", as kubectl
// prints them. Its items are read one by one: an invalid one does not affect the
// others.
type list struct {
	// frame is the document without its items.
	frame document
	items []document
}

// cutList splits a document, if it looks like a list.
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

// behindItems is the offset of the line after "items:", -1 if there is none.
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

// values returns the objects of the list, and false if it is not a list.
func (l list) values() ([]value, []Flaw, bool) {
	frame, f := l.frame.value()
	if f != nil || frame.read() != nil || newObject(frame.header.APIVersion, frame.header.Kind) != nil {
		return nil, nil, false
	}
	item, isList := itemKind(frame.header.APIVersion, frame.header.Kind)
	if !isList {
		return nil, nil, true
	}
	values, flaws := gather(l.items, func(d document) ([]value, []Flaw) { return d.item(item) })
	return values, flaws, true
}

// item returns the objects in an element of a block sequence.
func (d document) item(h header) ([]value, []Flaw) {
	d.text = bytes.Replace(d.text, []byte("-"), []byte(" "), 1)
	v, f := d.value()
	if f != nil {
		return nil, []Flaw{*f}
	}
	v.header = h
	return v.items(1)
}
