package all_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature/all"
)

// TestCoreNamesNoFeature: what turns the model into NGINX's configuration and
// serves by it knows features by what they declare alone. Their names, modules and
// settings stand nowhere there.
func TestCoreNamesNoFeature(t *testing.T) {
	t.Parallel()
	// A text that has none of the words has no name, which is faster to find out.
	var words, names []string
	add := func(word, before, after string) {
		words = append(words, word)
		names = append(names, before+regexp.QuoteMeta(word)+after)
	}
	for _, f := range all.Features() {
		if f.Name != "rewrite" && f.Name != "listen" { // a phase and a directive, too
			add(`"`+f.Name+`"`, "", "")
		}
		add("settings."+f.Name, `\b`, `\b`)
		add("headgate.feature."+f.Name, "", `\b`)
		if strings.Contains(f.Name, "_") {
			add(f.Name, `\b`, `\b`)
			add(strings.ReplaceAll(f.Name, "_", ""), `\b`, `\b`)
		}
		for _, s := range f.Settings {
			for _, name := range []string{s.Spec().Annotation, s.Spec().Key} {
				if strings.Contains(name, "-") && name != "keep-alive" { // a word too
					add(name, `(?:^|[^\w-])`, `(?:[^\w-]|$)`)
				}
			}
		}
	}
	forbidden := regexp.MustCompile(strings.Join(names, "|"))
	suspicious := func(text string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	files := 0
	for _, folder := range []string{"lua/headgate", "internal/plan", "internal/nginx", "internal/dataplane", "internal/unit"} {
		err := filepath.WalkDir(filepath.Join("../../..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && entry.Name() == "testdata" {
				return errOrSkip(err)
			}
			if entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			files++
			for i, line := range strings.Split(string(text), "\n") {
				if !suspicious(line) {
					continue
				}
				if found := forbidden.FindString(line); found != "" {
					t.Errorf("%s:%d names a feature: %s", strings.TrimPrefix(path, "../../../"), i+1, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Errorf("only %d files were read", files)
	}
}

func errOrSkip(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}
