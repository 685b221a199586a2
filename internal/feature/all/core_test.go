package all_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature/all"
)

// TestCoreNamesNoFeature: what turns the model into NGINX's configuration and
// serves by it knows features by what they declare alone. Their names, modules and
// settings stand nowhere there.
func TestCoreNamesNoFeature(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range all.Features() {
		quoted := regexp.QuoteMeta(f.Name)
		if f.Name != "rewrite" && f.Name != "listen" { // a phase and a directive, too
			names = append(names, `"`+quoted+`"`)
		}
		names = append(names, `\bsettings\.`+quoted+`\b`, `headgate\.feature\.`+quoted+`\b`)
		if strings.Contains(f.Name, "_") {
			names = append(names, `\b`+quoted+`\b`, `\b`+strings.ReplaceAll(quoted, "_", "")+`\b`)
		}
		for _, s := range f.Settings {
			for _, name := range []string{s.Spec().Annotation, s.Spec().Key} {
				if strings.Contains(name, "-") && name != "keep-alive" { // a word too
					names = append(names, `(?:^|[^\w-])`+regexp.QuoteMeta(name)+`(?:[^\w-]|$)`)
				}
			}
		}
	}
	forbidden := regexp.MustCompile(strings.Join(names, "|"))
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
