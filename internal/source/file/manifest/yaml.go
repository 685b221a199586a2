package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A lineError is an error with a line, which counts from 1 within the
// document.
type lineError struct {
	line   int
	reason string
}

func (e *lineError) Error() string { return "line " + strconv.Itoa(e.line) + ": " + e.reason }

// maxDepth bounds the nesting of a document; aliases that contain themselves
// end there too.
const maxDepth = 500

// widest is how many bytes of JSON a byte of YAML becomes at most, apart from
// aliases: an escape has six.
const widest = 6

// yamlJSON converts one YAML document to JSON with the same lines, nil if it is
// empty. It reads scalars as kubectl does: yes, no, on and off are booleans. A
// duplicate mapping key is an error.
func yamlJSON(text []byte) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, locate(text, err)
	}
	if root.Kind == 0 {
		return nil, nil
	}
	w := &jsonWriter{line: 1, limit: 1<<20 + widest*len(text)}
	if err := w.node(root.Content[0], 0); err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(w.out)) == "null" {
		return nil, nil
	}
	return w.out, nil
}

// parse gives the one document in a text, a node of no kind if there is none.
func parse(text []byte) (yaml.Node, error) {
	var root, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	err := dec.Decode(&root)
	if err == nil {
		err = dec.Decode(&more)
	}
	switch {
	case err == nil:
		return root, &lineError{more.Line, "there is content after the end of the document"}
	case errors.Is(err, io.EOF):
		return root, nil
	}
	return root, err
}

// maxReread is the size up to which a text with an error is read again to locate
// it.
const maxReread = 1 << 18

// locate finds the line of an error of the YAML parser. The parser names a
// line nearby, or none; since it reads from front to back, the line is the
// first with which the text fails in the same way.
func locate(text []byte, err error) error {
	line, reason := yamlReason(err)
	if len(text) > maxReread {
		return &lineError{max(line, 1), reason}
	}
	lines := slices.Collect(bytes.Lines(text))
	ends := make([]int, len(lines)+1)
	for i, l := range lines {
		ends[i+1] = ends[i] + len(l)
	}
	low, high := 1, max(len(lines), 1)
	for low < high {
		mid := (low + high) / 2
		_, again := parse(text[:ends[mid]])
		if again != nil && sameReason(again, reason) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	// The parser names tabs in one case of two.
	if line := lines[min(low, len(lines))-1]; bytes.IndexByte(line[:len(line)-len(bytes.TrimLeft(line, " \t"))], '\t') >= 0 {
		reason = "the indentation has a tab: it must be spaces"
	}
	return &lineError{low, reason}
}

func sameReason(err error, reason string) bool {
	_, r := yamlReason(err)
	return r == reason
}

// yamlReason splits an error of the YAML parser.
func yamlReason(err error) (int, string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	after, ok := strings.CutPrefix(text, "line ")
	if !ok {
		return 0, text
	}
	digits, reason, ok := strings.Cut(after, ": ")
	line, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, text
	}
	return line, reason
}

// A jsonWriter writes JSON and keeps every value on the line it came from,
// as far as lines only grow.
type jsonWriter struct {
	out  []byte
	line int
	// limit bounds the length of out while aliases are filled in, steps
	// counts the keys that were looked at for it.
	limit, steps int
}

// advance goes on to a line.
func (w *jsonWriter) advance(line int) {
	for ; w.line < line; w.line++ {
		w.out = append(w.out, '\n')
	}
}

func (w *jsonWriter) node(n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return &lineError{w.line, "nested too deeply"}
	case len(w.out) > w.limit:
		return &lineError{w.line, "too large after its aliases are expanded"}
	}
	if n.Kind == yaml.AliasNode {
		return w.node(n.Alias, depth+1)
	}
	w.advance(n.Line)
	switch n.Kind {
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.SequenceNode:
		w.out = append(w.out, '[')
		for i, item := range n.Content {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.node(item, depth+1); err != nil {
				return err
			}
		}
		w.out = append(w.out, ']')
		return nil
	}
	return w.scalar(n)
}

func (w *jsonWriter) mapping(n *yaml.Node, depth int) error {
	pairs, err := w.pairs(n, depth)
	if err != nil {
		return err
	}
	w.out = append(w.out, '{')
	for i, p := range pairs {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.advance(p.line)
		w.out = append(appendString(w.out, p.key), ':')
		if err := w.node(p.value, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// A pair is a key of a mapping with its value.
type pair struct {
	key   string
	value *yaml.Node
	line  int
}

// pairs lists what a mapping holds, with what it merges in by "<<".
func (w *jsonWriter) pairs(n *yaml.Node, depth int) ([]pair, error) {
	if depth > maxDepth {
		return nil, &lineError{max(w.line, n.Line), "nested too deeply"}
	}
	// The share of the limit that goes with the text is one step for a byte.
	if w.steps += 1 + len(n.Content)/2; w.steps > w.limit/widest {
		return nil, &lineError{n.Line, "too large after its aliases are expanded"}
	}
	var pairs []pair
	var merged []pair
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.ShortTag() == "!!merge" {
			merged = append(merged, pair{value: v, line: k.Line})
			continue
		}
		name, err := keyName(k)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, &lineError{k.Line, fmt.Sprintf("duplicate key %q", name)}
		}
		seen[name] = true
		pairs = append(pairs, pair{name, v, k.Line})
	}
	for _, m := range merged {
		more, err := w.merged(m.value, depth+1)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if !seen[p.key] {
				seen[p.key] = true
				// A merged key gets the line of the merge.
				p.line = max(p.line, m.line)
				pairs = append(pairs, p)
			}
		}
	}
	if len(merged) > 0 {
		slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.line, b.line) })
	}
	return pairs, nil
}

// merged lists what a value of "<<" brings in.
func (w *jsonWriter) merged(n *yaml.Node, depth int) ([]pair, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return w.pairs(n, depth)
	case yaml.SequenceNode:
		var all []pair
		for _, item := range n.Content {
			if item.Kind == yaml.AliasNode {
				item = item.Alias
			}
			if item.Kind != yaml.MappingNode {
				return nil, &lineError{n.Line, "the value of << must be mappings"}
			}
			more, err := w.pairs(item, depth)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	}
	return nil, &lineError{n.Line, "the value of << must be a mapping"}
}

// keyName is the key of a mapping as a string; numbers and booleans are
// allowed as keys.
func keyName(k *yaml.Node) (string, error) {
	if k.Kind != yaml.ScalarNode {
		return "", &lineError{k.Line, "a key must be a string"}
	}
	w := &jsonWriter{line: k.Line}
	if err := w.scalar(k); err != nil {
		return "", err
	}
	if w.out[0] != '"' {
		return string(w.out), nil
	}
	return k.Value, nil
}

func (w *jsonWriter) scalar(n *yaml.Node) error {
	tag := n.ShortTag()
	if tag == "!!str" && n.Tag == "!!str" && n.Style == 0 {
		tag = plainTag(n.Value)
	}
	switch tag {
	case "!!str", "!!timestamp", "!!merge":
		w.out = appendString(w.out, n.Value)
	case "!!null":
		w.out = append(w.out, "null"...)
	case oldBool:
		w.out = strconv.AppendBool(w.out, n.Value[0]|0x20 == 'y' || strings.EqualFold(n.Value, "on"))
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return &lineError{n.Line, fmt.Sprintf("%q is not a valid %s", n.Value, tag[2:])}
		}
		text, err := json.Marshal(v)
		if err != nil {
			return &lineError{n.Line, fmt.Sprintf("%q can't be used as a %s", n.Value, tag[2:])}
		}
		w.out = append(w.out, text...)
	default:
		return &lineError{n.Line, "tag " + n.Tag + " can't be used"}
	}
	return nil
}

// oldBool is the tag of the booleans of YAML 1.1, which kubectl knows and the
// parser takes for strings.
const oldBool = "yes or no"

// plainTag is the tag of a scalar without quotes that the parser takes for a
// string.
func plainTag(s string) string {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return oldBool
	}
	return "!!str"
}

// appendString appends s as a JSON string.
func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			// A string can't fail to become JSON.
			text, _ := json.Marshal(s)
			return append(out, text...)
		}
	}
	out = append(out, '"')
	out = append(out, s...)
	return append(out, '"')
}
