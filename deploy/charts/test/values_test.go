package chart_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// A leaf is a value of the chart that is not a map with keys.
type leaf []string

func leaves(values map[string]any) []leaf {
	var list []leaf
	for _, key := range slices.Sorted(maps.Keys(values)) {
		below, _ := values[key].(map[string]any)
		if len(below) == 0 {
			list = append(list, leaf{key})
		}
		for _, l := range leaves(below) {
			list = append(list, append(leaf{key}, l...))
		}
	}
	return list
}

// of is its value.
func (l leaf) of(values any) any {
	for _, key := range l {
		m, _ := values.(map[string]any)
		values = m[key]
	}
	return values
}

// others are values of the same type.
func (l leaf) others(value any) []any {
	switch value := value.(type) {
	case bool:
		return []any{!value}
	case float64:
		return []any{value + 1}
	case string:
		list := []any{"changed/8"}
		for _, word := range words[l[len(l)-1]] {
			list = append(list, word)
		}
		return list
	case []any:
		return []any{[]any{"changed"}, []any{map[string]any{"name": "changed", "data": map[string]any{"a": "b"}}}}
	}
	return []any{map[string]any{"changed": "1"}, map[string]any{"http": 8080, "5432": 30001, "53": 30002}}
}

// A base is a rendering that values are changed in.
type base struct {
	name string
	release
	values map[string]any
	result rendered
	files  map[string]string
}

// bases are the archives in testdata that can be rendered, those with most values first.
func bases(t *testing.T) []base {
	t.Helper()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	c := load(t)
	var list []base
	for _, file := range archives {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, values, _ := input(t, archive)
		// The archives have no dashboards, which would be in the results again.
		values = with(values, leaf{"controller", "metrics", "dashboards", "enabled"}, true)
		result, err := render(c, r, values)
		if err != nil {
			continue
		}
		all, err := chartutil.CoalesceValues(c, values)
		if err != nil {
			t.Fatal(err)
		}
		templates, err := files(c, r, all)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		list = append(list, base{name: name, release: r, values: all.AsMap(), result: result, files: templates})
	}
	slices.SortStableFunc(list, func(a, b base) int { return len(b.result.text) - len(a.result.text) })
	return list
}

// TestEveryValueHasAnEffect: each value of values.yaml changes an object, or NOTES say that it
// has no effect.
func TestEveryValueHasAnEffect(t *testing.T) {
	c, list := load(t), bases(t)
	// The other values have the right types, and parsing the schema takes most of the time.
	c.Schema = nil
	for _, l := range leaves(defaults(t)) {
		t.Run(strings.Join(l, "."), func(t *testing.T) {
			t.Parallel()
			if !slices.ContainsFunc(list, func(b base) bool { return l.changes(c, b) }) {
				t.Error("has no effect, and NOTES don't say so")
			}
		})
	}
}

// changes reports whether another value changes what is rendered. An error of a template is a
// change too.
func (l leaf) changes(c *chart.Chart, b base) bool {
	for _, value := range l.others(l.of(b.values)) {
		got, err := files(c, b.release, with(b.values, l, value))
		if err != nil || !maps.Equal(got, b.files) {
			return true
		}
	}
	return false
}
