// Package tier_test holds scripts/test and CONTRIBUTING.md to the tests that exist: each belongs to a tier.
package tier_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/headgate/headgate"

// packages are the directories that make test and make test-all run.
func packages(t *testing.T) (quick, all []string) {
	t.Helper()
	command := exec.Command("scripts/test", "list", "all")
	command.Dir = "../.."
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(output)) {
		for _, word := range strings.Fields(line) {
			directory, ok := strings.CutPrefix(word, module+"/")
			if !ok {
				directory, ok = strings.CutPrefix(word, "./")
			}
			if !ok {
				continue
			}
			all = append(all, directory)
			if name, _, _ := strings.Cut(line, ":"); slices.Contains([]string{"pure", "features", "page"}, name) {
				quick = append(quick, directory)
			}
		}
	}
	return quick, all
}

// isIn reports whether a directory is one of packages, or below one that ends in "/...".
func isIn(directory string, packages []string) bool {
	return slices.ContainsFunc(packages, func(p string) bool {
		above, all := strings.CutSuffix(p, "/...")
		return directory == above || all && strings.HasPrefix(directory, above+"/")
	})
}

// TestEachTestHasATier: a package with tests is in a run of make test-all, which has those of make test. Modules of
// their own have a step in scripts/test. Fuzz tests are found by scripts/fuzz.
func TestEachTestHasATier(t *testing.T) {
	_, all := packages(t)
	script, err := os.ReadFile("../test")
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	seen := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel("../..", path)
		if err != nil {
			return err
		}
		switch base := entry.Name(); {
		case entry.IsDir() && (strings.HasPrefix(base, ".") && name != "." || base == "testdata" || name == "bin"):
			return fs.SkipDir
		case base == "go.mod" && name != "go.mod":
			modules = append(modules, filepath.Dir(name))
		case strings.HasSuffix(base, "_test.go"):
			seen[filepath.Dir(name)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for directory := range seen {
		at := slices.IndexFunc(modules, func(m string) bool { return directory == m || strings.HasPrefix(directory, m+"/") })
		switch {
		case at >= 0 && !strings.Contains(string(script), "-C "+modules[at]+" "):
			t.Errorf("no tier runs the tests of the module %s", modules[at])
		case at < 0 && !isIn(directory, all):
			t.Errorf("no tier runs the tests in %s", directory)
		}
	}
	if len(seen) < 100 {
		t.Errorf("found tests in %d directories", len(seen))
	}
}

// TestPromises: the tests that CONTRIBUTING.md names exist, in the tier that it says.
func TestPromises(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| promise | tier | test |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	quick, all := packages(t)
	tests, group := regexp.MustCompile("Test[A-Za-z0-9]+"), regexp.MustCompile("((?:`Test[A-Za-z0-9]+`(?:, )?)+) \\(([a-z/0-9]+)\\)")
	found := 0
	for line := range strings.Lines(table) {
		column := strings.Split(line, " | ")
		if len(column) != 3 {
			continue
		}
		for _, of := range group.FindAllStringSubmatch(column[2], -1) {
			sources := sourcesOf(t, of[2])
			for _, name := range tests.FindAllString(of[1], -1) {
				if found++; !strings.Contains(sources, "func "+name+"(") {
					t.Errorf("%s has no %s", of[2], name)
				}
			}
			switch column[1] {
			case "`make test`":
				if !isIn(of[2], quick) && of[2] != "test/dashboard" { // where there is a browser
					t.Errorf("make test does not run %s", of[2])
				}
			case "`make test-all`":
				if !isIn(of[2], all) || isIn(of[2], quick) {
					t.Errorf("%s does not belong to make test-all", of[2])
				}
			default:
				t.Errorf("the tier %s is unknown", column[1])
			}
		}
	}
	if found < 15 {
		t.Errorf("the table names %d tests", found)
	}
}

func sourcesOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
