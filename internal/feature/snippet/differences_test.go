package snippet_test

import (
	"os"
	"strings"
	"testing"
)

// differences are the names of pairs that Headgate follows otherwise than NGINX, each below the
// reason, which docs/snippets.md has too.
func differences(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("testdata/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" && !strings.HasPrefix(name, "#") {
			names[name] = true
		}
	}
	return names
}
