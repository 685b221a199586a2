// Package limit holds docs/limits.md to the code: each number there names the place in the code where
// the limit is, in a comment behind its table.
package limit

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the numbers in docs/limits.md")

const page = "../../../docs/limits.md"

// A table is the limits of a part, with where their numbers are: a line for each row.
var table = regexp.MustCompile(`(?m)((?:^\| .*\|\n)+)\n<!-- In the code:\n((?:.+\n)+?)-->`)

// row is a limit: what it is, its number, per what, the key that sets it, and the rest. place is where a number is.
var (
	row   = regexp.MustCompile("^\\| (.+?) \\| (.+?) \\| (.+?) \\| (fixed|`([a-z-]+)`) \\| .*\\|$")
	place = regexp.MustCompile(`^(\w+): (\S+) (.+)$`)
)

// TestPageIsCurrent fails if a number of docs/limits.md is not the one in the code, or not where the page says.
func TestPageIsCurrent(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	now := table.ReplaceAllStringFunc(string(text), func(all string) string {
		found := table.FindStringSubmatch(all)
		lines, places := strings.Split(strings.TrimSpace(found[1]), "\n"), strings.Split(strings.TrimSpace(found[2]), "\n")
		if lines = lines[2:]; len(lines) != len(places) {
			t.Errorf("%q: %d limits, and %d places of numbers", lines[0], len(lines), len(places))
			return all
		}
		for i, line := range lines {
			rows++
			all = strings.Replace(all, line, current(t, line, places[i]), 1)
		}
		return all
	})
	if all := strings.Count(string(text), "\n| ") - 2*strings.Count(string(text), "| Limit |"); rows != all || rows < 200 {
		t.Errorf("%d of %d limits have a place where their number is", rows, all)
	}
	if *update {
		if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// current is a row with the number in the code.
func current(t *testing.T, line, where string) string {
	t.Helper()
	l, p := row.FindStringSubmatch(line), place.FindStringSubmatch(where)
	if l == nil || p == nil {
		t.Errorf("%q is not a limit, or %q not a place of a number", line, where)
		return line
	}
	n := number{unit(p[1]), p[2], p[3]}
	value, err := n.value("../../..")
	if err != nil {
		t.Errorf("%s: %v", l[1], err)
		return line
	}
	have := n.unit.String(value)
	if l[2] != have && !*update {
		t.Errorf("%s: %s in the page, %s in %s: go test ./internal/docs/limit -update", l[1], l[2], have, n.file)
	}
	return strings.Replace(line, " | "+l[2]+" | ", " | "+have+" | ", 1)
}

// TestKeysExist: keys that set limits are keys.
func TestKeysExist(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := os.ReadFile("../../../docs/configmap.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if l := row.FindStringSubmatch(strings.TrimSuffix(line, "\n")); l != nil && l[5] != "" && !strings.Contains(string(keys), "`"+l[5]+"`") {
			t.Errorf("%s: there is no key %s", l[1], l[5])
		}
	}
}

func TestNumbers(t *testing.T) {
	for have, want := range map[string]string{
		bytes.String(1 << 20):    "1 MiB",
		bytes.String(4095):       "4,095 bytes",
		count.String(10_000):     "10,000",
		seconds.String(0.02):     "20 ms",
		seconds.String(0.002):    "2 ms",
		duration.String(60e9):    "60 s",
		duration.String(300e9):   "5 min",
		megabytes.String(8):      "8 MiB",
		milliseconds.String(250): "250 ms",
	} {
		if have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
	for _, wrong := range []number{
		{count, "internal/model/limits.go", "none"}, {count, "lua/headgate/budget.lua", "NONE"}, {count, "lua/headgate/budget.lua", `local (\w+) =`},
	} {
		if _, err := wrong.value("../../.."); err == nil {
			t.Errorf("%+v is found", wrong)
		}
	}
}

// TestProofsExist: docs/security.md names tests that exist, in the folders that it says.
func TestProofsExist(t *testing.T) {
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	proofs := 0
	for _, line := range strings.Split(string(page), "\n") {
		for _, proof := range regexp.MustCompile("`(Test[A-Za-z]+)`(?: \\(([a-z/]+)\\))?").FindAllStringSubmatch(line, -1) {
			folder := proof[2]
			if folder == "" {
				folder = "test/dataplane"
			}
			if sources[folder] == "" {
				sources[folder] = testsOf(t, folder)
			}
			if proofs++; !strings.Contains(sources[folder], "func "+proof[1]+"(") {
				t.Errorf("%s has no %s", folder, proof[1])
			}
		}
	}
	if proofs < 20 {
		t.Errorf("the page names %d tests", proofs)
	}
}

func testsOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", folder, "*_test.go"))
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
