package limit

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/limits.md")

// TestPageIsCurrent fails if a number in the code is not the one in docs/limits.md, or is
// not where its declaration says.
func TestPageIsCurrent(t *testing.T) {
	const file = "../../../docs/limits.md"
	page, err := Page("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Errorf("%s is not what the code has: go test ./internal/docs/limit -update", file)
	}
}

// Keys that set limits must be keys.
func TestKeysExist(t *testing.T) {
	page, err := os.ReadFile("../../../docs/configmap.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range Groups() {
		for _, l := range group.Limits {
			if l.Key != "" && !strings.Contains(string(page), "`"+l.Key+"`") {
				t.Errorf("%s: there is no key %s", l.What, l.Key)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for number, want := range map[string]string{
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
		if number != want {
			t.Errorf("%q, want %q", number, want)
		}
	}
	for _, wrong := range []Number{
		constant("internal/model/limits.go", "none", count), constant("lua/headgate/budget.lua", "NONE", count), text("lua/headgate/budget.lua", `local (\w+) =`, count),
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
