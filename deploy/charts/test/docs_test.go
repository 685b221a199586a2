package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
)

// A helmCommand is a line such as "helm install NAME deploy/charts/headgate FLAGS", which can
// continue in the next ones.
var helmCommand = regexp.MustCompile(`(?m)^(?: {4})?helm (?:install|upgrade) (\S+) deploy/charts/headgate((?:.*\\\n)*.*)$`)

// TestDocumentedCommands: the chart accepts the values of commands in the documentation.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../headgate/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range helmCommand.FindAllStringSubmatch(string(text), -1) {
			found++
			r, values := release{name: command[1], namespace: "default"}, map[string]any{}
			words := strings.Fields(strings.ReplaceAll(command[2], "\\\n", " "))
			for i, word := range words {
				switch word {
				case "--set":
					if err := strvals.ParseInto(words[i+1], values); err != nil {
						t.Errorf("%s: %v", words[i+1], err)
					}
				case "--namespace":
					r.namespace = words[i+1]
				}
			}
			if _, err := render(load(t), r, values); err != nil {
				t.Errorf("%s: %s: %v", page, strings.TrimSpace(command[0]), err)
			}
		}
	}
	if found < 2 {
		t.Errorf("found %d commands of Helm in the documentation, want more", found)
	}
}
