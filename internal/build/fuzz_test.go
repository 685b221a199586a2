package build_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/unit"
)

// witness is what others must not disturb.
const witness = `
kind: Ingress
metadata: {name: witness, namespace: witness, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  rules:
  - host: witness.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: witness, port: {number: 80}}}}]}
---
kind: Service
metadata: {name: witness, namespace: witness}
spec: {ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: witness-1, namespace: witness, labels: {kubernetes.io/service-name: witness}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.9.9.9]}]
`

// FuzzBuild builds the objects of the golden cases with parts of them replaced:
// nothing panics, the witness's units stay as they were, and when the objects
// have gone, all is as it was before they came.
func FuzzBuild(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no cases: %v", err)
	}
	var cases [][]metav1.Object
	for i, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		objects := decode(f, archive.Files[0].Data)
		// The options are for all, the witness too.
		cases = append(cases, slices.DeleteFunc(objects, func(o metav1.Object) bool { return o.GetNamespace() == "headgate" }))
		f.Add(uint16(i), uint64(1), "*.example.com")
		f.Add(uint16(i), uint64(2), "/foo/(a|b)+$")
		f.Add(uint16(i), uint64(3), "x\r\n\x00{}\xff")
	}
	f.Fuzz(func(t *testing.T, number uint16, seed uint64, text string) {
		if strings.Contains(strings.ToLower(text), "witness") {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		s, builder := newStore(decode(t, []byte(witness))), newBuilder()
		before, units := map[unit.Key]string{}, map[unit.Key]string{}
		rebuild(before, builder, s, s.All())
		maps.Copy(units, before)
		var objects []metav1.Object
		for _, o := range cases[int(number)%len(cases)] {
			if o = mutated(t, o, random, text); o != nil && o.GetNamespace() != "headgate" {
				objects = append(objects, o)
				rebuild(units, builder, s, s.Apply(o, false))
			}
		}
		for key, unit := range before {
			if strings.Contains(key.Name, "witness") && units[key] != unit {
				t.Errorf("the witness's %s became\n%s\nfrom\n%s", key.Kind, units[key], unit)
			}
		}
		for _, o := range objects {
			rebuild(units, builder, s, s.Apply(o, true))
		}
		if !maps.Equal(units, before) {
			t.Errorf("with all deleted:\n%s\nbefore:\n%s", unitsText(units), unitsText(before))
		}
	})
}

// mutated is an object with some of its fields replaced, nil if that is not an
// object any more.
func mutated(t *testing.T, object metav1.Object, random *rand.Rand, text string) metav1.Object {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(mutate(tree, random, text)); err != nil {
		t.Fatal(err)
	}
	fresh := reflect.New(reflect.TypeOf(object).Elem()).Interface().(metav1.Object)
	if json.Unmarshal(data, fresh) != nil {
		return nil
	}
	return fresh
}

// mutate replaces one field in ten.
func mutate(value any, random *rand.Rand, text string) any {
	if random.IntN(10) == 0 {
		replacements := []any{text, nil, "", -1, 0, 1 << 31, true, []any{}, []any{text}, map[string]any{}, map[string]any{text: text}}
		if _, ok := value.(string); ok {
			replacements = []any{text, text, text, "", "*." + text, "/" + text}
		}
		return replacements[random.IntN(len(replacements))]
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "kind" {
				v[key] = mutate(v[key], random, text)
			}
		}
	case []any:
		for i := range v {
			v[i] = mutate(v[i], random, text)
		}
		if len(v) > 0 && random.IntN(5) == 0 {
			return append(v, v[random.IntN(len(v))])
		}
	}
	return value
}
