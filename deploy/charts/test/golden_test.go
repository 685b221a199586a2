package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// TestGolden renders each values file of testdata. The archives have the sections "release"
// (NAME NAMESPACE, "headgate ingress" by default) and "values.yaml", and as results "NOTES.txt" and
// "objects": what differs from those without values, or all for default.txtar; or "error".
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no archives", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sections, results := results(t, archive)
			got := *archive
			got.Files = append(sections, results...)
			if *update {
				if err := os.WriteFile(file, txtar.Format(&got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(&got))); diff != "" {
				t.Errorf("-want +got; `go test . -update` rewrites it:\n%s", diff)
			}
		})
	}
}

// input reads the release and the values of an archive, and returns these sections.
func input(t *testing.T, archive *txtar.Archive) (release, map[string]any, []txtar.File) {
	t.Helper()
	r := release{"headgate", "ingress"}
	var values map[string]any
	var sections []txtar.File
	for _, f := range archive.Files {
		switch f.Name {
		case "release":
			words := strings.Fields(string(f.Data))
			if len(words) != 2 {
				t.Fatalf("release must be NAME NAMESPACE, but is %q", f.Data)
			}
			r = release{words[0], words[1]}
		case "values.yaml":
			if err := yaml.UnmarshalStrict(f.Data, &values); err != nil {
				t.Fatal(err)
			}
		case "NOTES.txt", "objects", "error":
			continue
		default:
			t.Fatalf("unknown section %q", f.Name)
		}
		sections = append(sections, f)
	}
	return r, values, sections
}

// results renders an archive's values.
func results(t *testing.T, archive *txtar.Archive) (sections, results []txtar.File) {
	t.Helper()
	c := load(t)
	r, values, sections := input(t, archive)
	got, err := render(c, r, values)
	if err != nil {
		return sections, []txtar.File{{Name: "error", Data: []byte(message(err))}}
	}
	var defaults rendered
	if values != nil {
		if defaults, err = render(c, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	return sections, []txtar.File{
		{Name: "NOTES.txt", Data: []byte(got.notes)},
		{Name: "objects", Data: []byte(got.changes(t, defaults))},
	}
}

// message is an error without the line of the template, and with the schema's errors sorted: their
// order is that of a map.
func message(err error) string {
	_, text, ok := strings.Cut(err.Error(), "execution error at ")
	if ok {
		_, text, _ = strings.Cut(text, ": ")
		return text + "\n"
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "- ") }); first >= 0 {
		slices.Sort(lines[first:])
	}
	return strings.Join(lines, "\n") + "\n"
}
