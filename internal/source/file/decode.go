package file

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
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
	// old is about an object that was converted, nil for all others.
	old *Problem
}

// A header is what says of what kind an object is.
type header struct {
	APIVersion, Kind string
}

// field is the field of that name in JSON, nil for all others.
func (h *header) field(name string) *string {
	switch name {
	case `"apiVersion"`:
		return &h.APIVersion
	case `"kind"`:
		return &h.Kind
	}
	return nil
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
func decode(data []byte) content {
	all, flaws := values(data)
	found := make([]*object, len(all))
	wrong := make([]*flaw, len(all))
	parallel(len(all), func(i int) { found[i], wrong[i] = all[i].object() })

	c := content{objects: make([]object, 0, len(found)), flaws: flaws}
	lines := make(map[key]int, len(found))
	for i, o := range found {
		if wrong[i] != nil {
			c.flaws = append(c.flaws, *wrong[i])
		}
		if o == nil {
			continue
		}
		if first, twice := lines[o.key]; twice {
			c.vain = append(c.vain, flaw{o.line, inVain(o.key, fmt.Sprintf("line %d", first))})
			continue
		}
		lines[o.key] = o.line
		c.objects = append(c.objects, *o)
	}
	if len(c.flaws) > 0 && isTemplate(data, c.flaws) {
		first := slices.MinFunc(c.flaws, func(a, b flaw) int { return cmp.Compare(a.line, b.line) })
		c.flaws = []flaw{{first.line, "this looks like a Helm template: render it first (helm template); as it stands, " + first.reason}}
	}
	return c
}

var helmAction = regexp.MustCompile(`\{\{[^}\n]*(?:\.Values|\.Release|\.Chart|include|template|define)\b`)

// isTemplate reports whether a file with flaws is a template, whose parser
// messages say nothing: it has an action of Helm, or a flaw stands where an
// action of any kind does.
func isTemplate(data []byte, flaws []flaw) bool {
	data = normal(data)
	if !bytes.Contains(data, []byte("{{")) {
		return false
	}
	if helmAction.Match(data) {
		return true
	}
	lines := bytes.Split(data, []byte("\n"))
	return slices.ContainsFunc(flaws, func(f flaw) bool {
		return f.line > 0 && f.line <= len(lines) && bytes.Contains(lines[f.line-1], []byte("{{"))
	})
}

// values takes a file apart into its objects.
func values(data []byte) ([]value, []flaw) {
	docs := split(data)
	values := make([][]value, len(docs))
	flaws := make([][]flaw, len(docs))
	parallel(len(docs), func(i int) { values[i], flaws[i] = docs[i].values() })
	return flatten(values), flatten(flaws)
}

// inVain says that an object stands in another place too, which counts.
func inVain(k key, place string) string {
	return fmt.Sprintf("%v is already defined in %s", k, place)
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

// errNoManifest is what read says of a mapping that is something else, as the
// values of a Helm chart or its Chart.yaml: it is passed over.
var errNoManifest = &flaw{}

// read fills in header and says what is wrong with it.
func (v *value) read() *flaw {
	if text := bytes.TrimLeft(v.json, " \t\r\n"); len(text) == 0 || text[0] != '{' {
		return &flaw{v.start(), "not an object: apiVersion, kind and metadata are expected"}
	}
	var h header
	members := jsonParts(v.json, v.offset())
	has := map[string]bool{}
	for i := 0; i+1 < len(members); i += 2 {
		name, at := members[i].of(v.json), members[i+1]
		has[string(name)] = true
		field := h.field(string(name))
		if field == nil {
			continue
		}
		if err := json.Unmarshal(at.of(v.json), field); err != nil {
			return &flaw{v.lineAt(int64(at.from)), string(name[1:len(name)-1]) + " must be a string"}
		}
	}
	if h.APIVersion == "" {
		h.APIVersion = v.header.APIVersion
	}
	if h.Kind == "" {
		h.Kind = v.header.Kind
	}
	v.header = h
	switch {
	case h.Kind == "" && !(has[`"metadata"`] && (h.APIVersion != "" || has[`"spec"`])):
		return errNoManifest
	case h.Kind == "":
		return &flaw{v.start(), "kind is missing"}
	case h.APIVersion == "":
		return &flaw{v.start(), h.Kind + " has no apiVersion"}
	}
	return nil
}

// offset is where the object itself begins, start its line.
func (v value) offset() int { return len(v.json) - len(bytes.TrimLeft(v.json, " \t\r\n")) }

func (v value) start() int { return v.lineAt(int64(v.offset())) }

// items is the value itself or, if it is a list, what is in it. What is
// of no kind that is taken is left out.
func (v value) items(depth int) ([]value, []flaw) {
	switch f := v.read(); {
	case f == errNoManifest && depth == 0:
		return nil, nil
	case f == errNoManifest:
		return nil, []flaw{{v.start(), "kind is missing"}}
	case f != nil:
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
	spans, f := v.listItems()
	if f != nil {
		return nil, []flaw{*f}
	}
	var values []value
	var flaws []flaw
	for _, one := range v.parts(spans, item) {
		got, bad := one.items(depth + 1)
		values, flaws = append(values, got...), append(flaws, bad...)
	}
	return values, flaws
}

// parts gives parts of the value as values of their own.
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
func (v value) listItems() ([]span, *flaw) {
	members := jsonParts(v.json, v.offset())
	for i := 0; i+1 < len(members); i += 2 {
		at := members[i+1]
		if string(members[i].of(v.json)) != `"items"` {
			continue
		}
		switch text := at.of(v.json); {
		case text[0] == '[':
			return jsonParts(v.json, at.from), nil
		case string(text) != "null":
			return nil, &flaw{v.lineAt(int64(at.from)), "items is not a list"}
		}
	}
	return nil, nil
}

// object decodes the value.
func (v value) object() (*object, *flaw) {
	o := newObject(v.header.APIVersion, v.header.Kind)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(v.json, o); err != nil {
		return nil, v.flaw(v.header.Kind, err)
	}
	o, isOld := renew(o)
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
	result := &object{key: k, line: v.start(), object: o}
	if isOld {
		result.old = oldVersion(v.header, k, o)
	}
	return result, nil
}

// unquoted is the first annotation, or label, whose value is not a string.
func (v value) unquoted(field string) (name string, ok bool) {
	from := v.offset()
	for _, step := range strings.Split(field, ".") {
		members := jsonParts(v.json, from)
		found := false
		for i := 0; i+1 < len(members) && !found; i += 2 {
			if string(members[i].of(v.json)) == `"`+step+`"` {
				from, found = members[i+1].from, true
			}
		}
		if !found || v.json[from] != '{' {
			return "", false
		}
	}
	if field != "metadata.annotations" && field != "metadata.labels" {
		return "", false
	}
	members := jsonParts(v.json, from)
	for i := 0; i+1 < len(members); i += 2 {
		if text := members[i+1].of(v.json); text[0] != '"' && string(text) != "null" {
			err := json.Unmarshal(members[i].of(v.json), &name)
			return name, err == nil
		}
	}
	return "", false
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
		if name, ok := v.unquoted(field); ok {
			return &flaw{v.lineAt(at.Offset), fmt.Sprintf("%s%s: the value of %q must be a string, not a %s: write it in quotes", kind, field, name, at.Value)}
		}
		return &flaw{v.lineAt(at.Offset), fmt.Sprintf("%s%s can't be a %s, it must be a %s", kind, field, at.Value, at.Type)}
	}
	if ok, offset := kjson.SyntaxErrorOffset(err); ok {
		return &flaw{v.lineAt(offset), kind + err.Error()}
	}
	return &flaw{v.start(), kind + strings.TrimPrefix(err.Error(), "json: ")}
}
