package edges

import (
	"strings"
	"testing"
)

// TestNamed: only what may be the name of a Pod is shown of what an edge says.
func TestNamed(t *testing.T) {
	for said, want := range map[string]string{
		"web-1":                  "edges/web-1",
		"node.example.com":       "edges/node.example.com",
		"edges":                  "edges",
		"":                       "edges",
		"a/b":                    "edges",
		"web\n1":                 "edges",
		"\x1b[2J":                "edges",
		strings.Repeat("a", 254): "edges",
		strings.Repeat("a", 253): "edges/" + strings.Repeat("a", 253),
	} {
		if got := named("edges", said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
