package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"unicode/utf16"
)

// A document is one YAML document of a file, or JSON.
type document struct {
	text []byte
	// line is the line of the first byte, last the last line.
	line, last int
}

// split cuts a file into its documents. YAML allows no line that starts with
// "---" or "..." inside a document, in quotes and block scalars neither.
//
// The text that helm prints around the manifests of a release is left out: a
// summary before them, and notes after them.
func split(data []byte) []document {
	data = normal(data)
	helm := bytes.HasPrefix(data, helmSource) || bytes.Contains(data, append([]byte("\n"), helmSource...))
	var docs []document
	start, first, line, notes := 0, 1, 1, false
	cut := func(end, last int) {
		text := data[start:end]
		if !notes && !isEmpty(text) && !(helm && bytes.Contains(text, []byte("\nLAST DEPLOYED: "))) {
			docs = append(docs, document{text: text, line: first, last: max(first, last)})
		}
	}
	for pos := 0; pos < len(data); line++ {
		text, rest, _ := bytes.Cut(data[pos:], []byte("\n"))
		end := min(pos+len(text)+1, len(data))
		switch {
		case notes && !bytes.HasPrefix(rest, helmSource):
		case marker(text, "---") || marker(text, "..."):
			cut(pos, line-1)
			start, first, notes = end, line+1, false
			if marker(text, "---") && !isEmpty(text[3:]) {
				start, first = pos, line
			}
		case helm && string(bytes.TrimRight(text, " ")) == "NOTES:":
			cut(pos, line-1)
			notes = true
		}
		pos = end
	}
	cut(len(data), line-1)
	return docs
}

// helmSource begins the comment that helm writes at the top of each document.
var helmSource = []byte("# Source: ")

// normal converts text to UTF-8 with Unix line endings: editors on Windows write
// others, and its shell writes UTF-16.
func normal(data []byte) []byte {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		data = fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		data = fromUTF16(data[2:], binary.BigEndian)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	return data
}

func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	// There is a byte for each unit.
	_, _ = binary.Decode(data, order, units)
	return []byte(string(utf16.Decode(units)))
}

// marker reports whether a line starts with a document marker.
func marker(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r"), rest[0]) >= 0)
}

// isEmpty reports whether text has only white space, comments and directives.
func isEmpty(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line[0] == '%' {
			continue
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// values returns the objects of the document, those of a list one by one.
func (d document) values() ([]value, []Flaw) {
	if bytes.HasPrefix(bytes.TrimLeft(d.text, " \t\n"), []byte("{")) {
		if values, flaws, ok := d.jsonValues(); ok {
			return values, flaws
		}
	}
	var values []value
	var flaws []Flaw
	l, isList := d.cutList()
	if isList {
		values, flaws, isList = l.values()
	}
	if isList && !d.isAmbiguous(flaws) {
		return values, flaws
	}
	v, f := d.value()
	switch {
	case f != nil && isList:
		return values, flaws
	case f != nil:
		return nil, []Flaw{*f}
	case v.json == nil:
		return nil, nil
	}
	return v.items(0)
}

// isAmbiguous reports whether the document may be valid as a whole although parts
// of it are not: aliases may lead to other parts, and quoted text may continue in
// lines that look like an item.
func (d document) isAmbiguous(flaws []Flaw) bool {
	return len(flaws) > 0 && len(d.text) <= maxReread ||
		slices.ContainsFunc(flaws, func(f Flaw) bool { return strings.HasPrefix(f.Reason, "unknown anchor") })
}

// value returns the document as one value, whose JSON is nil if it is empty.
func (d document) value() (value, *Flaw) {
	text, err := yamlJSON(d.text)
	if err != nil {
		f := Flaw{d.line, err.Error()}
		if at, ok := errors.AsType[*lineError](err); ok {
			f = Flaw{min(d.line+at.line-1, d.last), at.reason}
		}
		return value{}, &f
	}
	return value{json: text, line: d.line, last: d.last}, nil
}

// jsonValues reads the document as JSON, one text after the other. It returns
// false if it is not JSON: YAML may begin with a brace too.
func (d document) jsonValues() ([]value, []Flaw, bool) {
	spans, err := jsonTexts(d.text)
	if err != nil && (len(spans) == 0 || d.isYAML()) {
		return nil, nil, false
	}
	whole := value{json: d.text, line: d.line, last: d.last}
	values, flaws := gather(whole.parts(spans, header{}), func(one value) ([]value, []Flaw) { return one.items(0) })
	if err != nil {
		flaws = append(flaws, Flaw{whole.lineAt(int64(spans[len(spans)-1].to) + err.offset), err.reason})
	}
	return values, flaws, true
}

func (d document) isYAML() bool {
	_, err := yamlJSON(d.text)
	return err == nil
}
