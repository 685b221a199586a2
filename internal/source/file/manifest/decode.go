package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
)

// A header has the version and kind of an object.
type header struct {
	APIVersion, Kind string
}

// A value is one object as JSON. The JSON has the line breaks of the file, so that
// offsets lead to lines.
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

// Decode reads all objects of one file. Documents that can't be read are
// flaws, all others are objects. If an object is defined twice, the first one is
// used.
func Decode(data []byte) Content {
	_, found, flaws := decode(data)
	c := Content{Objects: make([]Object, 0, len(found)), Flaws: flaws}
	lines := make(map[Key]int, len(found))
	for _, o := range found {
		if o == nil {
			continue
		}
		if first, twice := lines[o.Key]; twice {
			c.Duplicates = append(c.Duplicates, Flaw{o.Line, o.AlreadyDefined(fmt.Sprintf("line %d", first))})
			continue
		}
		lines[o.Key] = o.Line
		c.Objects = append(c.Objects, *o)
	}
	if len(c.Flaws) > 0 && isTemplate(data, c.Flaws) {
		first := slices.MinFunc(c.Flaws, func(a, b Flaw) int { return cmp.Compare(a.Line, b.Line) })
		c.Flaws = []Flaw{{first.Line, "this looks like a Helm template: render it first (helm template); as it stands, " + first.Reason}}
	}
	return c
}

var helmAction = regexp.MustCompile(`\{\{[^}\n]*(?:\.Values|\.Release|\.Chart|include|template|define)\b`)

// isTemplate reports whether a file with flaws is a template, for which parser
// messages do not help: it has an action of Helm, or a flaw is on a line with an
// action of any kind.
func isTemplate(data []byte, flaws []Flaw) bool {
	data = normal(data)
	if !bytes.Contains(data, []byte("{{")) {
		return false
	}
	if helmAction.Match(data) {
		return true
	}
	lines := bytes.Split(data, []byte("\n"))
	return slices.ContainsFunc(flaws, func(f Flaw) bool {
		return f.Line > 0 && f.Line <= len(lines) && bytes.Contains(lines[f.Line-1], []byte("{{"))
	})
}

// decode returns the values of a file, and the object of each, nil if it can't be
// decoded.
func decode(data []byte) ([]value, []*Object, []Flaw) {
	all, flaws := gather(split(data), document.values)
	found := make([]*Object, len(all))
	wrong := make([]*Flaw, len(all))
	Parallel(len(all), func(i int) { found[i], wrong[i] = all[i].decode() })
	for _, f := range wrong {
		if f != nil {
			flaws = append(flaws, *f)
		}
	}
	return all, found, flaws
}

// gather concatenates the values and flaws of the parts of a file.
func gather[T any](parts []T, read func(T) ([]value, []Flaw)) ([]value, []Flaw) {
	values := make([][]value, len(parts))
	flaws := make([][]Flaw, len(parts))
	Parallel(len(parts), func(i int) { values[i], flaws[i] = read(parts[i]) })
	return slices.Concat(values...), slices.Concat(flaws...)
}

// errNoManifest is the result of read for a mapping that is not a manifest, such
// as the values of a Helm chart or its Chart.yaml: it is ignored.
var errNoManifest = &Flaw{}

// read fills in header, and returns what is wrong with it.
func (v *value) read() *Flaw {
	if text := bytes.TrimLeft(v.json, " \t\r\n"); len(text) == 0 || text[0] != '{' {
		return &Flaw{v.start(), "not an object: apiVersion, kind and metadata are expected"}
	}
	var own struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
	}
	if at, ok := errors.AsType[*json.UnmarshalTypeError](kjson.UnmarshalCaseSensitivePreserveInts(v.json, &own)); ok {
		return &Flaw{v.lineAt(at.Offset), at.Field + " must be a string"}
	}
	h := header{cmp.Or(own.APIVersion, v.header.APIVersion), cmp.Or(own.Kind, v.header.Kind)}
	v.header = h
	switch {
	case h.Kind == "" && !(own.Metadata != nil && (h.APIVersion != "" || own.Spec != nil)):
		return errNoManifest
	case h.Kind == "":
		return &Flaw{v.start(), "kind is missing"}
	case h.APIVersion == "":
		return &Flaw{v.start(), h.Kind + " has no apiVersion"}
	}
	return nil
}

// offset is where the object itself begins, start its line.
func (v value) offset() int { return len(v.json) - len(bytes.TrimLeft(v.json, " \t\r\n")) }

func (v value) start() int { return v.lineAt(int64(v.offset())) }

// items is the value itself or, if it is a list, its items, without those of
// other kinds.
func (v value) items(depth int) ([]value, []Flaw) {
	switch f := v.read(); {
	case f == errNoManifest && depth == 0:
		return nil, nil
	case f == errNoManifest:
		return nil, []Flaw{{v.start(), "kind is missing"}}
	case f != nil:
		return nil, []Flaw{*f}
	}
	if newObject(v.header.APIVersion, v.header.Kind) != nil {
		return []value{v}, nil
	}
	item, isList := itemKind(v.header.APIVersion, v.header.Kind)
	if !isList {
		return nil, nil
	}
	if depth == 3 {
		return nil, []Flaw{{v.start(), "too many lists inside each other"}}
	}
	spans, f := v.listItems()
	if f != nil {
		return nil, []Flaw{*f}
	}
	return gather(v.parts(spans, item), func(one value) ([]value, []Flaw) { return one.items(depth + 1) })
}

// parts returns parts of the value as values.
func (v value) parts(spans []span, h header) []value {
	values := make([]value, len(spans))
	line, seen := v.line, 0
	for i, at := range spans {
		line += bytes.Count(v.json[seen:at.from], []byte("\n"))
		seen = at.from
		values[i] = value{json: at.of(v.json), line: min(line, v.last), last: v.last, header: h}
	}
	return values
}

// listItems finds the elements of the array "items".
func (v value) listItems() ([]span, *Flaw) {
	items, ok := newText(v).find([]step{{name: "items"}})
	text := items.value.of(v.json)
	if !ok || string(text) == "null" {
		return nil, nil
	}
	if text[0] != '[' {
		return nil, &Flaw{v.lineAt(int64(items.at)), "items is not a list"}
	}
	var spans []span
	for _, p := range jsonParts(v.json, items.value.from) {
		spans = append(spans, p.value)
	}
	return spans, nil
}

// decode decodes the value.
func (v value) decode() (*Object, *Flaw) {
	o := newObject(v.header.APIVersion, v.header.Kind)
	err := kjson.UnmarshalCaseSensitivePreserveInts(v.json, o)
	var bare *Problem
	if _, is := o.(*corev1.ConfigMap); is && err != nil {
		if o, bare = v.readBare(); bare != nil {
			err = nil
		}
	}
	if err != nil {
		return nil, v.flaw(v.header.Kind, err)
	}
	o, isOld := renew(o)
	complete(o)
	k := Key{v.header.Kind, o.GetNamespace(), o.GetName()}
	if k.Name == "" {
		return nil, &Flaw{v.start(), k.Kind + " has no metadata.name"}
	}
	if msgs := validation.IsDNS1123Subdomain(k.Name); len(msgs) > 0 {
		return nil, &Flaw{v.start(), fmt.Sprintf("%s: metadata.name %q can't be used: %s", k.Kind, k.Name, msgs[0])}
	}
	if msgs := validation.IsDNS1123Label(k.Namespace); !clustered(o) && len(msgs) > 0 {
		return nil, &Flaw{v.start(), fmt.Sprintf("%s %s: metadata.namespace %q can't be used: %s", k.Kind, k.Name, k.Namespace, msgs[0])}
	}
	result := &Object{Key: k, Line: v.start(), Object: o, Problem: bare}
	if bare != nil {
		bare.Reason = k.String() + ": " + bare.Reason
	}
	if isOld {
		result.Problem = oldVersion(v.header, k, o)
		result.Problem.Line = result.Line
	}
	return result, nil
}

// unquoted returns the first annotation, label or key whose value is not a string.
func (v value) unquoted(field string) (name string, ok bool) {
	if !slices.Contains([]string{"metadata.annotations", "metadata.labels", "data", "stringData"}, field) {
		return "", false
	}
	at, _ := newText(v).find(stepsTo("", field))
	for _, p := range jsonParts(v.json, at.value.from) {
		if text := p.value.of(v.json); text[0] != '"' && string(text) != "null" {
			return p.name, true
		}
	}
	return "", false
}

// flaw converts an error of the JSON decoder.
func (v value) flaw(kind string, err error) *Flaw {
	if kind != "" {
		kind += ": "
	}
	if at, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := at.Field
		if field == "" {
			field = "value"
		}
		if name, ok := v.unquoted(field); ok {
			return &Flaw{v.lineAt(at.Offset), fmt.Sprintf("%s%s: the value of %q must be a string, not %s: write it in quotes", kind, field, name, article(at.Value))}
		}
		return &Flaw{v.lineAt(at.Offset), fmt.Sprintf("%s%s must be %s, not %s", kind, field, typeName(at.Type), article(at.Value))}
	}
	if ok, offset := kjson.SyntaxErrorOffset(err); ok {
		return &Flaw{v.lineAt(offset), kind + err.Error()}
	}
	return &Flaw{v.start(), kind + strings.TrimPrefix(err.Error(), "json: ")}
}

// typeName is how a message names the type that a field must have.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "an array"
	default:
		return article(t.Kind().String())
	}
}

// article puts "a" or "an" before the noun.
func article(noun string) string {
	if noun != "" && strings.Contains("aeio", noun[:1]) {
		return "an " + noun
	}
	return "a " + noun
}
