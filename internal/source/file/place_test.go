package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// placed writes a file and reads it once.
func placed(t *testing.T, name, text string) *Once {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	once, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range once.Problems[path] {
		if p.Object == "" {
			t.Fatal(p)
		}
	}
	return once
}

// TestPlace: the lines of fields in all ways to write them.
func TestPlace(t *testing.T) {
	const block = `# a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: first}
---

apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations:
    example.com/folded: >-
      rules:
      - host
    example.com/quoted: "two
      lines"
    "example.com/\x61fter": x
spec:
  tls:
  - hosts: [a.test]
    secretName: one
  - secretName: two
    hosts: [b.test]
  rules:
  - host: a.test
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service: {name: web, port: {number: 80}}
      -
        path: /x
        pathType: Prefix
        backend: {service: {
          name: web,
          port: {number: 80}}}
`
	for _, c := range []struct {
		name, text, object string
		lines              map[string]int
	}{
		{"block.yaml", block, "ingress/default/web", map[string]int{
			"": 8, "nothing": 8, "metadata.name": 11, "metadata.annotations": 12,
			"example.com/folded": 13, "example.com/quoted": 16, "example.com/after": 18, "example.com/missing": 12,
			"spec": 19, "spec.defaultBackend": 19, "spec.tls[0].secretName": 22, "spec.tls[1]": 23, "spec.tls[1].secretName": 23,
			"spec.tls[2].secretName": 20, "spec.tls[-1]": 20, "spec.tls[x]": 20,
			"spec.rules[0].host": 26, "spec.rules[0].http.paths[0].backend.service": 32,
			"spec.rules[0].http.paths[1]": 34, "spec.rules[0].http.paths[1].path": 34,
			"spec.rules[0].http.paths[1].backend.service.port": 38, "spec.rules[0].http.paths[1].backend.resource": 36,
			"spec.rules.host": 25, "spec[0]": 19, "spec.rules[0].host.more": 26, "[": 8, ".": 8,
		}},
		{"block.yaml", block, "namespace/first", map[string]int{"": 3, "metadata.name": 5}},
		{"windows.yaml", strings.ReplaceAll(block, "\n", "\r\n"), "ingress/default/web", map[string]int{"example.com/after": 18, "spec.rules[0].http.paths[1].path": 34}},
		{"old.yaml", "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata:\n  name: web\nspec:\n  backend:\n    serviceName: s\n    servicePort: 80\n",
			"ingress/default/web", map[string]int{"spec.defaultBackend": 6, "spec.defaultBackend.service": 6}},
		{"list.yaml", "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    a: |\n      b: 1\n    b: \"2\"\n  kind: ConfigMap\n  metadata:\n    name: m\nkind: List\n",
			"configmap/default/m", map[string]int{"": 3, "a": 5, "b": 7, "c": 4}},
		{"anchors.yaml", "apiVersion: v1\nkind: List\nx: &more\n  k: v\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: m}\n  data:\n    a: 1a\n    <<: *more\n\n    b: 2b\n",
			"configmap/default/m", map[string]int{"": 6, "a": 10, "k": 11, "b": 13}},
		{"one.json", `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1","a":
"2","b/c":"\"}",
"d":"x"}}]}`, "configmap/default/m", map[string]int{"": 2, "a": 2, "b/c": 3, "d": 4}},
	} {
		once := placed(t, c.name, c.text)
		for field, want := range c.lines {
			place, ok := once.Place(c.object, field)
			if !ok || place.Line != want || filepath.Base(place.Path) != c.name {
				t.Errorf("%s: %s %s stands at %v, want line %d", c.name, c.object, field, place, want)
			}
		}
		for _, object := range []string{"", "ingress", "ingress/default/none", "pod/default/web", "namespace/x/first"} {
			if place, ok := once.Place(object, ""); ok {
				t.Errorf("%s: %q stands at %v", c.name, object, place)
			}
		}
	}
}

// TestPlaceOfGoneFile: the line of an object is known without its file.
func TestPlaceOfGoneFile(t *testing.T) {
	once := placed(t, "a.yaml", "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: b\n")
	for path := range once.state.files {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if place, ok := once.Place("configmap/default/m", "a"); !ok || place.Line != 2 {
		t.Errorf("it stands at %v", place)
	}
}

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

func compareLines(t *testing.T, v *text, n *yaml.Node, way []step, before, last int) {
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
