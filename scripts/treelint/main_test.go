package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLint has a tree with one of each kind that is over its limit, and one that is not.
func TestLint(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	long := func(lines int) string { return strings.Repeat("// text\n", lines) }
	write("docs/picture.png", strings.Repeat("x", maxBytes+1), 0o644)
	write("docs/page.md", strings.Repeat("x", maxBytes), 0o644)
	write("program", "\x7fELF", 0o755)
	write("scripts/run", "#!/bin/sh\n", 0o755)
	write("internal/a/long.go", long(maxFileLines+1), 0o644)
	write("internal/a/full.go", long(maxFileLines), 0o644)
	write("internal/a/long_test.go", long(maxFileLines+1), 0o644)
	write("internal/a/function.go", "package a\n\nfunc f() {\n"+long(maxFunctionLines+1)+"}\n\nfunc g() {\n"+long(maxFunctionLines)+"}\n\nfunc h() {}\n"+long(maxFunctionLines)+"type t struct {\n}\n", 0o644)
	for _, name := range []string{"1", "2", "3", "4", "5", "6"} {
		write("cmd/large/"+name+".go", long(maxPackageLines/5), 0o644)
	}
	write("lua/headgate/long.lua", long(maxFileLines+1), 0o644)
	for _, name := range "bcdefghijklmnopqrstuvwxyz" {
		write("internal/"+string(name)+"/x.go", "package x\n", 0o644)
	}
	if output, err := exec.Command("git", "init", "--quiet", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	got, err := lint(root, map[string]string{"cmd/large": "known", "gone": "no more"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/picture.png: has 300001 bytes", "gone: is within the limits", "internal/a/function.go:3: a function has 81 lines",
		"internal/a/long.go: has 401 lines", "internal: 26 directories", "lua/headgate/long.lua: has 401 lines", "program: is executable",
	}
	if len(got) != len(want) || slices.ContainsFunc(want, func(w string) bool {
		return !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) })
	}) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := lint(t.TempDir()+"/none", nil); err == nil {
		t.Error("lints a directory that does not exist")
	}
}
