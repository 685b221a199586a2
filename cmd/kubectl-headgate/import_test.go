package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The plugin runs where kubectl runs: without cgo, and on systems that have neither NGINX nor
// libpcre2.
func TestPlatforms(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}{{with .Error}}: {{.}}{{end}}", ".")
		list.Env = append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0")
		// On standard error it says what it downloads.
		var stderr strings.Builder
		list.Stderr = &stderr
		output, err := list.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", system, err, &stderr)
		}
		for line := range strings.Lines(string(output)) {
			name := strings.TrimSpace(line)
			if strings.Contains(name, ": ") || strings.Contains(name, "ebitengine/purego") || strings.HasSuffix(name, "internal/syntax/pcre") {
				t.Errorf("%s: %s", system, name)
			}
		}
	}
}
