package manifest

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestTexts(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: |\n    Grüße\n\n    x\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
	windows := strings.ReplaceAll(text, "\n", "\r\n")
	wide := func(order binary.AppendByteOrder) string {
		out := order.AppendUint16(nil, 0xfeff)
		for _, u := range utf16.Encode([]rune(windows)) {
			out = order.AppendUint16(out, u)
		}
		return string(out)
	}
	want := string(describe(t, []byte(text)))
	for name, other := range map[string]string{
		"Windows": windows, "byte order mark": "\xef\xbb\xbf" + windows,
		"little endian": wide(binary.LittleEndian), "big endian": wide(binary.BigEndian),
	} {
		if got := string(describe(t, []byte(other))); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestCutList(t *testing.T) {
	const text = "kind: List\nitems:\n  # first\n  - a: b\n    - c\n\n  -\n    d: |\n     - e\n# last\nmetadata: {}\n"
	l, ok := (document{text: []byte(text), line: 10, last: 20}).cutList()
	if !ok || string(l.frame.text) != "kind: List\nitems: []\nmetadata: {}\n" || len(l.items) != 2 {
		t.Fatalf("%v: %d items in %q", ok, len(l.items), l.frame.text)
	}
	for i, want := range []document{
		{[]byte("  - a: b\n    - c\n\n"), 13, 15}, {[]byte("  -\n    d: |\n     - e\n# last\n"), 16, 19},
	} {
		if got := l.items[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("item %d: %q in %d to %d, want %q in %d to %d", i, got.text, got.line, got.last, want.text, want.line, want.last)
		}
	}
}

func TestTabs(t *testing.T) {
	for _, text := range []string{"a:\n\tb: c\n", "a:\n- b\n\t- c\n", "kind: List\nitems:\n- a:\n  \tb: c\n", "a: |\n  x\nb:\n \tc: d\n"} {
		flaws := Decode([]byte("---\n" + text)).Flaws
		line := 2 + strings.Count(text[:strings.Index(text, "\t")], "\n")
		if len(flaws) != 1 || flaws[0].Line != line || !strings.Contains(flaws[0].Reason, "the indentation has a tab") {
			t.Errorf("%q: %v, want a tab in line %d", text, flaws, line)
		}
	}
}

// FuzzList compares a list that is read item by item with the same one read
// as a whole.
func FuzzList(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, ok := (document{text: data}).cutList(); !ok || len(split(data)) != 1 {
			return
		}
		d := split(data)[0]
		l, ok := d.cutList()
		if !ok {
			return
		}
		parts, flaws, ok := l.values()
		whole, f := d.value()
		if !ok || len(flaws) > 0 || f != nil || whole.json == nil {
			return
		}
		all, flaws := whole.items(0)
		if len(flaws) > 0 || len(all) != len(parts) {
			t.Fatalf("%q\n%d parts\n%d as a whole, %v", data, len(parts), len(all), flaws)
		}
		for i := range all {
			a, b := strings.ReplaceAll(string(all[i].json), "\n", ""), strings.ReplaceAll(string(parts[i].json), "\n", "")
			if a != b || all[i].header != parts[i].header || all[i].start() != parts[i].start() {
				t.Fatalf("%q\npart  %s in %d\nwhole %s in %d", data, b, parts[i].start(), a, all[i].start())
			}
		}
	})
}

func TestJSONParts(t *testing.T) {
	const text = ` {"a\"b" : "\\", "c":[1,{"d":"]"}] ,"e":-1.5e3,"f":{},"g":"\"}\"" , "h":null}`
	want := []string{`a"b`, `"\\"`, `c`, `[1,{"d":"]"}]`, `e`, `-1.5e3`, `f`, `{}`, `g`, `"\"}\""`, `h`, `null`}
	var got []string
	for _, p := range jsonParts([]byte(text), 1) {
		got = append(got, p.name, string(p.value.of([]byte(text))))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
