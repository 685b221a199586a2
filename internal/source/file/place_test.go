package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
