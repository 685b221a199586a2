package metrics_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageIsComplete compares the names in docs/metrics.md with those in the code: a test of
// internal/command/run generates the page from the metrics that it registers, which may not be all.
func TestPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Headgate's own metrics")
	documented := names(regexp.MustCompile("`(headgate_[a-z_]+)`"), table)
	var declared []string
	name := regexp.MustCompile(`"(headgate_[a-z_]+)"`)
	for _, root := range []string{"../../../internal", "../../../cmd/headgate"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			declared = append(declared, names(name, string(text))...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(declared)
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Compact(declared), slices.Compact(documented)); diff != "" {
		t.Errorf("docs/metrics.md differs from the code (-code +page):\n%s", diff)
	}
}

func names(pattern *regexp.Regexp, text string) []string {
	var list []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		list = append(list, match[1])
	}
	return list
}
