package manifest

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// plainJSON converts a document to the same JSON as yamlJSON, twenty times
// faster, if it has the plain form of nearly all manifests and of the output of
// kubectl: block mappings and sequences of ASCII, scalars on one line or in the
// form "|", comments on lines of their own. It returns false for all others,
// valid or not.
func plainJSON(text []byte) ([]byte, bool) {
	for _, c := range text {
		if c != '\n' && (c < 0x20 || c > 0x7e) {
			return nil, false
		}
	}
	p := &plain{rest: string(text)}
	p.out.line = 1
	p.out.out = make([]byte, 0, len(text)+len(text)/4)
	p.next()
	if p.end || !p.block(0) || !p.end {
		return nil, false
	}
	return p.out.out, true
}

// plain reads the lines of a document. Its methods return false if the document is
// not plain.
type plain struct {
	rest string
	out  jsonWriter
	// The current line: its number, how many spaces it begins with, and its
	// text without them.
	line, indent int
	text         string
	end          bool
}

// next goes to the next line that is neither empty nor a comment.
func (p *plain) next() {
	for p.rest != "" {
		var line string
		line, p.rest, _ = strings.Cut(p.rest, "\n")
		p.line++
		p.text = strings.TrimLeft(line, " ")
		p.indent = len(line) - len(p.text)
		p.text = strings.TrimRight(p.text, " ")
		if p.text != "" && p.text[0] != '#' {
			return
		}
	}
	p.end = true
}

// dash reports whether the line is an element of a sequence.
func (p *plain) dash() bool { return p.text == "-" || strings.HasPrefix(p.text, "- ") }

// deeper reports whether the line is indented more than by indent.
func (p *plain) deeper(indent int) bool { return !p.end && p.indent > indent }

// block reads the mapping or sequence that begins at the current line.
func (p *plain) block(depth int) bool {
	if depth > maxDepth/2 {
		return false
	}
	if p.dash() {
		return p.sequence(depth)
	}
	return p.mapping(depth)
}

func (p *plain) mapping(depth int) bool {
	indent := p.indent
	p.out.advance(p.line)
	p.out.out = append(p.out.out, '{')
	var keys []string
	for !p.end && p.indent == indent && !p.dash() {
		name, rest, ok := cutKey(p.text)
		if !ok || !addKey(&keys, name) {
			return false
		}
		if len(keys) > 1 {
			p.out.out = append(p.out.out, ',')
		}
		p.out.advance(p.line)
		p.out.out = append(appendString(p.out.out, name), ':')
		if !p.member(indent, rest, depth) {
			return false
		}
	}
	p.out.out = append(p.out.out, '}')
	return !p.deeper(indent)
}

// member reads the value after a key, or on the lines below it.
func (p *plain) member(indent int, rest string, depth int) bool {
	if rest != "" {
		return p.scalar(indent, rest)
	}
	line := p.line
	p.next()
	if p.deeper(indent) || !p.end && p.indent == indent && p.dash() {
		return p.block(depth + 1)
	}
	p.out.advance(line)
	p.out.out = append(p.out.out, "null"...)
	return true
}

func (p *plain) sequence(depth int) bool {
	indent := p.indent
	p.out.advance(p.line)
	p.out.out = append(p.out.out, '[')
	for first := true; !p.end && p.indent == indent && p.dash(); first = false {
		if !first {
			p.out.out = append(p.out.out, ',')
		}
		p.out.advance(p.line)
		rest := strings.TrimLeft(p.text[1:], " ")
		if _, _, isMap := cutKey(rest); isMap {
			p.indent += len(p.text) - len(rest)
			p.text = rest
			if !p.block(depth + 1) {
				return false
			}
			continue
		}
		if rest == "" || !p.scalar(indent, rest) {
			return false
		}
	}
	p.out.out = append(p.out.out, ']')
	return !p.deeper(indent)
}

// cutKey cuts "key: rest". Only keys that are surely strings are plain.
func cutKey(text string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(text, ": ")
	if !ok {
		name, ok = strings.CutSuffix(text, ":")
	}
	if !ok || name == "" || len(name) > 500 || !letter(name[0]) && name != "." || reserved(name) {
		return "", "", false
	}
	for i := range len(name) {
		// Those of the second row are in what managed fields are named.
		if c := name[i]; !letter(c) && !digit(c) && strings.IndexByte("_-./"+`:{}",`, c) < 0 {
			return "", "", false
		}
	}
	return name, strings.TrimLeft(rest, " "), true
}

// addKey adds a key that is not there yet. Mappings with many keys are left
// to the parser that has a better way to find those that stand twice.
func addKey(keys *[]string, name string) bool {
	for _, k := range *keys {
		if k == name {
			return false
		}
	}
	*keys = append(*keys, name)
	return len(*keys) <= 64
}

// scalar reads a scalar on one line; a line below that is indented more would
// belong to it.
func (p *plain) scalar(indent int, text string) bool {
	if text == "|" || text == "|-" {
		return p.literal(indent, text == "|")
	}
	out, ok := appendPlain(p.out.out, text)
	if !ok {
		return false
	}
	p.out.out = out
	p.next()
	return !p.deeper(indent)
}

// literal reads the lines below "|", which ends with a line break, or "|-".
func (p *plain) literal(indent int, ends bool) bool {
	var text []byte
	inner := -1
	for p.rest != "" {
		line, rest, whole := strings.Cut(p.rest, "\n")
		bare := strings.TrimLeft(line, " ")
		own := len(line) - len(bare)
		if bare != "" {
			if inner < 0 {
				inner = own
			}
			if own < inner {
				break
			}
			line = line[inner:]
		} else if inner < 0 || own > inner {
			return false
		} else {
			line = ""
		}
		if !whole || inner <= indent {
			return false
		}
		text = append(append(text, line...), '\n')
		p.rest = rest
		p.line++
	}
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return false
	}
	if ends {
		text = append(text, '\n')
	}
	p.out.out = appendString(p.out.out, string(text))
	p.next()
	return !p.deeper(indent)
}

func appendPlain(out []byte, text string) ([]byte, bool) {
	if text == "{}" || text == "[]" {
		return append(out, text...), true
	}
	c, last := text[0], len(text)-1
	if c == '"' || c == '\'' {
		if last == 0 || text[last] != c {
			return nil, false
		}
		inner, ok := unquote(text[1:last], c)
		return appendString(out, inner), ok
	}
	if text[last] == ':' || strings.Contains(text, ": ") || strings.Contains(text, " #") {
		return nil, false
	}
	switch {
	case c == '/' || letter(c) && !reserved(text):
		return appendString(out, text), true
	case letter(c) || digit(c) || c == '$' || c == '(' || c == '.' || c == '-' && text != "-" && text[1] != ' ':
		if number(text) {
			return append(out, text...), true
		}
		w := &jsonWriter{out: out}
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
		n.Tag = n.ShortTag()
		if err := w.scalar(n); err != nil {
			return nil, false
		}
		return w.out, true
	}
	return nil, false
}

// unquote returns the text between quotes.
func unquote(text string, quote byte) (string, bool) {
	if quote == '\'' {
		plain := strings.ReplaceAll(text, "''", "\x00")
		return strings.ReplaceAll(plain, "\x00", "'"), !strings.Contains(plain, "'")
	}
	if !strings.ContainsAny(text, `"\`) {
		return text, true
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			return "", false
		}
		if c == '\\' {
			if i++; i == len(text) {
				return "", false
			}
			switch c = text[i]; c {
			case '"', '\\':
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			default:
				return "", false
			}
		}
		out = append(out, c)
	}
	return string(out), true
}

// number reports whether text is an integer as in JSON.
func number(text string) bool {
	if text == "0" {
		return true
	}
	for i := range len(text) {
		if !digit(text[i]) {
			return false
		}
	}
	return len(text) < 18 && text[0] != '0'
}

// reserved reports whether a word that begins with a letter may be a value other
// than a string.
func reserved(word string) bool {
	if len(word) > 5 {
		return false
	}
	switch string(bytes.ToLower([]byte(word))) {
	case "y", "yes", "on", "true", "n", "no", "off", "false", "null":
		return true
	}
	return false
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }
