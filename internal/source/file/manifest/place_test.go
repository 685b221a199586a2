package manifest

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// FuzzPlace compares the line of each field with the one that the YAML parser
// gives it.
func FuzzPlace(f *testing.F) {
	for _, text := range []string{
		"a: 1\nb:\n- c: |\n   x\n   y\n- d: \"\n\n  \"\n  e: [f, {g: h,\n   i: j}]\n",
		"a:\n\n- b: >-\n   c\n\n   d\n  e: 'x\n   y'\n", "{a: b,\n c: [d,\ne]}", "? a\n: b\nc: d\n", "a: &x {b: c}\nd: *x\ne: f",
		"a: &x\n  b: c\n\nd:\n  <<: *x\n  e: f\n", "<<: {a: b,\n c: d}\n\ne: f\n", "a: # c\n  - - b\n    - c\n  -\n  - d\n", "\"\\n\": 1\n1: 2\nyes: no\n",
		block(f),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range split(data) {
			v, wrong := d.value()
			// Aliases make much of little.
			if wrong != nil || v.json == nil || len(v.json) > 10_000 {
				continue
			}
			root, err := parse(d.text)
			if err != nil || root.Kind == 0 {
				continue
			}
			last := v.last
			whole := newText(v)
			compareLines(t, whole, root.Content[0], nil, d.line-1, last)
			// No way through a value leads out of it.
			for _, field := range []string{"a[0].b", "spec.rules[9].http", "x/y", string(data[:min(len(data), 20)])} {
				if line := whole.lineOf(stepsTo("Ingress", field)); line < d.line || line > last {
					t.Fatalf("%q is in line %d of lines %d to %d", field, line, d.line, last)
				}
			}
		}
	})
}

func block(f *testing.F) string {
	f.Helper()
	asYAML, _, _ := dump(f, 4000)
	return asYAML
}

func compareLines(t *testing.T, v *Text, n *yaml.Node, way []step, before, last int) {
	if len(way) > 20 {
		return
	}
	check := func(next []step, line int) {
		if got := v.lineOf(next); got != min(line+before, last) {
			t.Fatalf("%v is in line %d, want %d of\n%s", next, got, line+before, v.json)
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, err := keyName(n.Content[i])
			if err != nil || name == "" || n.Content[i].ShortTag() == "!!merge" {
				continue
			}
			way := append(way[:len(way):len(way)], step{name: name})
			check(way, n.Content[i].Line)
			compareLines(t, v, n.Content[i+1], way, before, last)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if item.Kind == yaml.AliasNode {
				continue
			}
			way := append(way[:len(way):len(way)], step{index: i})
			check(way, item.Line)
			compareLines(t, v, item, way, before, last)
		}
	}
}
