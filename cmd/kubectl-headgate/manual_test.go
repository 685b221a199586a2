package main

import (
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/headgate/headgate/internal/docs/manual"
)

// TestPageIsCurrent compares the second part of docs/kubectl-plugin.md with the
// commands.
func TestPageIsCurrent(t *testing.T) {
	const file, title = "../../docs/kubectl-plugin.md", "\n# Commands\n"
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(have), title)
	if !ok {
		t.Fatalf("%s has no section %q", file, title)
	}
	page := manual.Page{Head: head + title, Root: newPlugin("headgate", genericiooptions.NewTestIOStreamsDiscard(), nil).command()}.Markdown()
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(have) != page {
		t.Errorf("%s differs from the commands: go test ./cmd/kubectl-headgate -run Page -update", file)
	}
}
