package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// supported is what the notes know about keys of the ConfigMap and flags.
type supported struct {
	// Keys have an effect.
	Keys []string `json:"keys"`
	// Flags have no effect, for a reason.
	Flags map[string]string `json:"flags"`
}

var tableRow = regexp.MustCompile("(?m)^\\| `(?:--)?([a-z0-9_-]+)` \\| ([^|\n]+) \\|")

// documented reads docs/configmap.md and docs/flags.md, which are made from the program.
func documented(t *testing.T) supported {
	t.Helper()
	read := func(page string) string {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	s := supported{Flags: map[string]string{}}
	tables, _, found := strings.Cut(read("configmap.md"), "\n## Never supported\n")
	_, flags, foundFlags := strings.Cut(read("flags.md"), "\n## Flags without effect\n")
	if !found || !foundFlags {
		t.Fatal("the pages have other sections")
	}
	for _, row := range tableRow.FindAllStringSubmatch(tables, -1) {
		s.Keys = append(s.Keys, row[1])
	}
	flags, _, _ = strings.Cut(flags, "\n## ")
	for _, row := range tableRow.FindAllStringSubmatch(flags, -1) {
		s.Flags[row[1]] = row[2]
	}
	slices.Sort(s.Keys)
	s.Keys = slices.Compact(s.Keys)
	if len(s.Keys) < 100 || len(s.Flags) < 5 {
		t.Fatalf("the pages have %d keys and %d flags without effect", len(s.Keys), len(s.Flags))
	}
	return s
}

// TestSupported: the chart knows the keys and flags that are documented.
func TestSupported(t *testing.T) {
	text, err := yaml.Marshal(documented(t))
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte("# Written by `go test . -update` in deploy/charts/test, from docs/configmap.md and docs/flags.md.\n"), text...)
	file := filepath.Join(folder, "files/supported.yaml")
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not that of the pages (%v); `go test . -update` rewrites it", file, err)
	}
}
