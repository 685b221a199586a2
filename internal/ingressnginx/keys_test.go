package ingressnginx

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestKeyTable compares the embedded list with that of the compatibility tests.
func TestKeyTable(t *testing.T) {
	text, err := os.ReadFile("../../test/compat/configmap.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name, _, found := strings.Cut(line, "\t"); found && name != "name" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := strings.Join(names, "\n") + "\n"
	if *update {
		if err := os.WriteFile("keys.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if keyTable != want {
		t.Error("keys.txt differs from test/compat/configmap.tsv (go test -update writes it)")
	}
	if len(names) < 240 || !slices.Contains(names, "use-forwarded-headers") || slices.Contains(names, "use-forwarded-header") {
		t.Errorf("%d keys, want those of ingress-nginx", len(names))
	}
}
