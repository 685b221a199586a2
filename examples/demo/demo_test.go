package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPages keeps the commands in the documentation those that -check runs: all of them in one page, and no others in
// the README.
func TestPages(t *testing.T) {
	run := map[string]bool{}
	for _, c := range commands(ports{http: 8080, https: 8443, healthz: 10254, dashboard: 8000}) {
		run[c.line] = true
	}
	in := func(file string) map[string]bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, block, _ := strings.Cut(string(text), "\n```sh\n")
		block, _, _ = strings.Cut(block, "\n```")
		shown := map[string]bool{}
		for line := range strings.SplitSeq(block, "\n") {
			if !strings.HasPrefix(line, "#") {
				shown[line] = true
			}
		}
		return shown
	}
	if got, want := slices.Sorted(maps.Keys(in("../../docs/try-it.md"))), slices.Sorted(maps.Keys(run)); !slices.Equal(got, want) {
		t.Errorf("docs/try-it.md has the commands\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	shown := in("../../README.md")
	for line := range shown {
		if !run[line] {
			t.Errorf("the README has the command\n%s\nwhich the demo does not run", line)
		}
	}
	if len(shown) < 5 {
		t.Errorf("the README has %d commands", len(shown))
	}
}
