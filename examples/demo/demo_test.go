package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadme keeps the commands in the README those that -check runs.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands(ports{http: 8080, https: 8443, healthz: 10254, dashboard: 8000}) {
		if !strings.Contains(string(readme), "\n"+c.line+"\n") && !strings.Contains(string(readme), "\n"+c.line+" #") {
			t.Errorf("the README lacks the line\n%s", c.line)
		}
	}
}
