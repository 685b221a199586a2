package chart_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// perKey are maps whose keys are settings of their own.
var perKey = []string{"controller.config", "controller.extraArgs"}

// settings are the values of a user, one by one: below a map that the chart has no keys for,
// the map is one.
func settings(chart, values map[string]any, at leaf) (list []leaf) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		l := append(slices.Clone(at), key)
		below, isMap := values[key].(map[string]any)
		keys, _ := chart[key].(map[string]any)
		if isMap && (len(keys) > 0 || slices.Contains(perKey, strings.Join(l, "."))) {
			list = append(list, settings(keys, below, l)...)
			continue
		}
		list = append(list, l)
	}
	return list
}

// without returns values without one.
func without(values map[string]any, l leaf) map[string]any {
	result := maps.Clone(values)
	if len(l) == 1 {
		delete(result, l[0])
		return result
	}
	below, _ := values[l[0]].(map[string]any)
	result[l[0]] = without(below, l[1:])
	return result
}

// reason is why the notes say that a value has no effect.
func (r rendered) reason(l leaf) string {
	for line := range strings.Lines(r.notes) {
		names, text, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			if path := strings.Join(l, "."); path == name || strings.HasPrefix(path, name+".") {
				return text
			}
		}
	}
	return ""
}

// effect says what a setting of a user does, which the second rendering is without.
func (r rendered) effect(l leaf, fewer rendered) string {
	if reason := r.reason(l); reason != "" {
		return "no effect: " + strings.TrimSuffix(strings.TrimPrefix(reason, "has no effect: "), ".")
	}
	kinds := map[string]bool{}
	for _, texts := range []map[string]string{r.text, fewer.text} {
		for key := range texts {
			if r.text[key] != fewer.text[key] {
				kind, _, _ := strings.Cut(key, " ")
				kinds[kind] = true
			}
		}
	}
	switch list := slices.Sorted(maps.Keys(kinds)); {
	case len(list) == 0:
		return ""
	case len(list) > 5:
		return "all objects"
	default:
		return strings.Join(list, ", ")
	}
}

const carryOverHead = `# Values that carry over

<!-- Written by ` + "`go test . -update`" + ` in deploy/charts/test. -->

A values file of ingress-nginx's chart 4.15 is one of [Headgate's chart](../deploy/charts/headgate/README.md) too. This table shows it for
[a file with %d settings](../deploy/charts/test/testdata/ingress-nginx-values.yaml): each has an effect on the objects that are named, or none, for a reason. Then
the notes that Helm prints name it too. [ConfigMap keys](configmap.md) and [flags](flags.md) describe the effect of those.

| value | effect on |
| --- | --- |
`

// TestCarryOver: each setting of a values file of ingress-nginx's chart changes an object, or
// the notes say why it has no effect. docs/upgrade-values.md has the results.
func TestCarryOver(t *testing.T) {
	text, err := os.ReadFile("testdata/ingress-nginx-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	c, r := load(t), release{"headgate", "ingress"}
	all, err := render(c, r, values)
	if err != nil {
		t.Fatal(err)
	}
	// Parsing the schema takes most of the time.
	c.Schema = nil
	var table bytes.Buffer
	changed, list := 0, settings(defaults(t), values, nil)
	for _, l := range list {
		name := strings.Join(l, ".")
		if got := l.of(defaults(t)); fmt.Sprint(got) == fmt.Sprint(l.of(values)) {
			// A file often has the default too.
			fmt.Fprintf(&table, "| `%s` | the default |\n", name)
			continue
		}
		fewer, err := render(c, r, without(values, l))
		if err != nil {
			t.Fatalf("without %s: %v", name, err)
		}
		effect := all.effect(l, fewer)
		if effect == "" {
			t.Errorf("%s has no effect, and the notes don't say so", name)
		}
		changed++
		fmt.Fprintf(&table, "| `%s` | %s |\n", name, effect)
	}
	if changed < 40 {
		t.Errorf("%d settings are not the default, want 40 at least", changed)
	}
	page := filepath.Join(root, "docs/upgrade-values.md")
	want := append(fmt.Appendf(nil, carryOverHead, len(list)), table.Bytes()...)
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the chart does (%v); `go test . -update` rewrites it", page, err)
	}
}
