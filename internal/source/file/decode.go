package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
)

// A key names an object.
type key struct{ kind, namespace, name string }

// String is the key in the form "Ingress default/shop".
func (k key) String() string {
	if k.namespace == "" {
		return k.kind + " " + k.name
	}
	return k.kind + " " + k.namespace + "/" + k.name
}

// An object is one object of a file.
type object struct {
	key
	line   int
	object metav1.Object
}

// A header is what says of what kind an object is.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// A value is one object as JSON. A newline stands in the JSON wherever one
// stood in the file, so that offsets lead to lines.
type value struct {
	json []byte
	// line is the line of the first byte, last the last one of the document.
	line, last int
	// header is used where the JSON has none.
	header header
}

// lineAt is the line of the file that an offset in the JSON belongs to.
func (v value) lineAt(offset int64) int {
	n := min(max(offset, 0), int64(len(v.json)))
	return min(v.line+bytes.Count(v.json[:n], []byte("\n")), v.last)
}

// decode reads all objects of one file. Documents that can't be read are
// flaws, all others are objects. An object that stands twice is taken from
// its first place.
func decode(data []byte) ([]object, []flaw) {
	docs := split(data)
	values := make([][]value, len(docs))
	flaws := make([][]flaw, len(docs))
	parallel(len(docs), func(i int) { values[i], flaws[i] = docs[i].values() })

	all := flatten(values)
	found := make([]*object, len(all))
	wrong := make([]*flaw, len(all))
	parallel(len(all), func(i int) { found[i], wrong[i] = all[i].object() })

	problems := flatten(flaws)
	objects := make([]object, 0, len(found))
	lines := make(map[key]int, len(found))
	for i, o := range found {
		if wrong[i] != nil {
			problems = append(problems, *wrong[i])
		}
		if o == nil {
			continue
		}
		if first, twice := lines[o.key]; twice {
			problems = append(problems, flaw{o.line, fmt.Sprintf("%v stands in line %d already, which is taken", o.key, first)})
			continue
		}
		lines[o.key] = o.line
		objects = append(objects, *o)
	}
	return objects, problems
}

func flatten[T any](lists [][]T) []T {
	if len(lists) == 1 {
		return lists[0]
	}
	var all []T
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// parallel calls do with 0 to n-1 on all cores, in any order, and returns
// when all calls have.
func parallel(n int, do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// A document is one YAML document of a file, or one JSON text.
type document struct {
	text []byte
	// line is the line of the first byte, last the last line.
	line, last int
}

// split cuts a file into its documents. YAML allows no line that starts with
// "---" or "..." inside a document, in quotes and block scalars neither.
func split(data []byte) []document {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var docs []document
	start, first, line := 0, 1, 1
	cut := func(end, last int) {
		if !blank(data[start:end]) {
			docs = append(docs, document{text: data[start:end], line: first, last: max(first, last)})
		}
	}
	for pos := 0; pos < len(data); line++ {
		text, _, _ := bytes.Cut(data[pos:], []byte("\n"))
		end := min(pos+len(text)+1, len(data))
		if marker(text, "---") || marker(text, "...") {
			cut(pos, line-1)
			start, first = end, line+1
			if marker(text, "---") && !blank(text[3:]) {
				start, first = pos, line
			}
		}
		pos = end
	}
	cut(len(data), line-1)
	return docs
}

// marker says whether a line starts with a document marker.
func marker(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r"), rest[0]) >= 0)
}

// blank says whether text holds only white space, comments and directives.
func blank(text []byte) bool {
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

// values gives the objects of the document, those of a list one by one.
func (d document) values() ([]value, []flaw) {
	text, err := d.json()
	if err != nil {
		f := flaw{d.line, err.Error()}
		if at, ok := errors.AsType[*lineError](err); ok {
			f = flaw{min(d.line+at.line-1, d.last), at.reason}
		}
		return nil, []flaw{f}
	}
	if text == nil {
		return nil, nil
	}
	return value{json: text, line: d.line, last: d.last}.items(0)
}

// json gives the document as JSON, nil if it holds nothing.
func (d document) json() ([]byte, error) {
	if text := bytes.TrimLeft(d.text, " \t\r\n"); text[0] == '{' && json.Valid(text) {
		return d.text, nil
	}
	if text, ok := plainJSON(d.text); ok {
		return text, nil
	}
	return yamlJSON(d.text)
}

// read fills in header and says what is wrong with it.
func (v *value) read() *flaw {
	if text := bytes.TrimLeft(v.json, " \t\r\n"); len(text) == 0 || text[0] != '{' {
		return &flaw{v.start(), "not an object: apiVersion, kind and metadata are expected"}
	}
	var h header
	if err := kjson.UnmarshalCaseSensitivePreserveInts(v.json, &h); err != nil {
		return v.flaw("", err)
	}
	if h.APIVersion == "" {
		h.APIVersion = v.header.APIVersion
	}
	if h.Kind == "" {
		h.Kind = v.header.Kind
	}
	v.header = h
	switch {
	case h.Kind == "":
		return &flaw{v.start(), "kind is missing"}
	case h.APIVersion == "":
		return &flaw{v.start(), h.Kind + " has no apiVersion"}
	}
	return nil
}

// start is the line where the object itself begins.
func (v value) start() int {
	space := len(v.json) - len(bytes.TrimLeft(v.json, " \t\r\n"))
	return v.lineAt(int64(space))
}

// items is the value itself or, if it is a list, what is in it. What is
// of no kind that is taken is left out.
func (v value) items(depth int) ([]value, []flaw) {
	if f := v.read(); f != nil {
		return nil, []flaw{*f}
	}
	if newObject(v.header.APIVersion, v.header.Kind) != nil {
		return []value{v}, nil
	}
	item, isList := itemKind(v.header.APIVersion, v.header.Kind)
	if !isList {
		return nil, nil
	}
	if depth == 3 {
		return nil, []flaw{{v.start(), "lists in lists in lists"}}
	}
	texts, err := listItems(v.json)
	if err != nil {
		return nil, []flaw{{v.start(), err.Error()}}
	}
	var values []value
	var flaws []flaw
	line, seen := v.line, 0
	for _, span := range texts {
		line += bytes.Count(v.json[seen:span.from], []byte("\n"))
		seen = span.from
		one := value{json: v.json[span.from:span.to], line: min(line, v.last), last: v.last, header: item}
		got, bad := one.items(depth + 1)
		values, flaws = append(values, got...), append(flaws, bad...)
	}
	return values, flaws
}

// A span is a part of a text.
type span struct{ from, to int }

// listItems finds the elements of the array "items".
func listItems(text []byte) ([]span, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read list: %w", err)
	}
	var skipped, raw json.RawMessage
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("read list: %w", err)
		}
		if name != "items" {
			if err := dec.Decode(&skipped); err != nil {
				return nil, fmt.Errorf("read list: %w", err)
			}
			continue
		}
		open, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("read list: %w", err)
		}
		if open == nil {
			return nil, nil
		}
		if open != json.Delim('[') {
			return nil, errors.New("items is not a list")
		}
		var spans []span
		for dec.More() {
			if err := dec.Decode(&raw); err != nil {
				return nil, fmt.Errorf("read list: %w", err)
			}
			to := int(dec.InputOffset())
			spans = append(spans, span{to - len(raw), to})
		}
		return spans, nil
	}
	return nil, nil
}

// object decodes the value.
func (v value) object() (*object, *flaw) {
	o := newObject(v.header.APIVersion, v.header.Kind)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(v.json, o); err != nil {
		return nil, v.flaw(v.header.Kind, err)
	}
	complete(o)
	k := key{v.header.Kind, o.GetNamespace(), o.GetName()}
	if k.name == "" {
		return nil, &flaw{v.start(), k.kind + " has no metadata.name"}
	}
	if msgs := validation.IsDNS1123Subdomain(k.name); len(msgs) > 0 {
		return nil, &flaw{v.start(), fmt.Sprintf("%s: metadata.name %q can't be used: %s", k.kind, k.name, msgs[0])}
	}
	if msgs := validation.IsDNS1123Label(k.namespace); !clustered(o) && len(msgs) > 0 {
		return nil, &flaw{v.start(), fmt.Sprintf("%s %s: metadata.namespace %q can't be used: %s", k.kind, k.name, k.namespace, msgs[0])}
	}
	return &object{key: k, line: v.start(), object: o}, nil
}

// flaw is an error of the JSON decoder, in words of the file.
func (v value) flaw(kind string, err error) *flaw {
	if kind != "" {
		kind += ": "
	}
	if at, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := at.Field
		if field == "" {
			field = "value"
		}
		return &flaw{v.lineAt(at.Offset), fmt.Sprintf("%s%s can't be a %s, it must be a %s", kind, field, at.Value, at.Type)}
	}
	if ok, offset := kjson.SyntaxErrorOffset(err); ok {
		return &flaw{v.lineAt(offset), kind + err.Error()}
	}
	return &flaw{v.start(), kind + strings.TrimPrefix(err.Error(), "json: ")}
}
