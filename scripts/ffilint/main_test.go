package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLint has one of each kind that is on the list, and one that is not.
func TestLint(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(list, "Text of `another`.\n\n| names | by whom |\n| --- | --- |\n| `known`, `struct ours`, `ready` | us, and `other` |\n| `gone` | them |\n")
	write("lua/good.lua", "local C = require(\"ffi\").C\nffi.cdef [[\nint known(int fd);\nstruct ours { long unknown, others[3]; };\n/* no(); */\n]]\nlocal x = C.known(1) + C.ready\n")
	write("lua/bad.lua", "ffi.cdef[[\nextern volatile long number, second;\nconst char *text(void (*free)(void *), ...);\nstruct theirs { int a; } __attribute__((packed));\n]]\nlocal x = ffi.C.called() + C.called()\nlocal y = ffi.new(\"ngx_other_t[?]\", 2)\n")
	write("internal/feature/x/odd.lua", "local declare = ffi.cdef\nlocal D = ffi.C\nlocal x = ffi.cast('struct { int a; } *', p)\nlocal y = C[name]\n")
	write("internal/nginx/probe.go", "package nginx\n\nconst lua = `require(\"ffi\").cdef \"int version(void);\" print(require(\"ffi\").C.version())`\n")
	write("internal/nginx/number.go", "package nginx\n\nvar x = C.unknown\n")
	write("internal/nginx/probe_test.go", "package nginx\n\nconst lua = `ffi.C.unknown()`\n")
	write("internal/feature/x/testdata/any.lua", "ffi.C.unknown()\n")
	got, err := lint(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/decisions/0073-ffi.md: Lua touches gone no more", "internal/feature/x/odd.lua: has a cdef that is not of the form",
		"internal/feature/x/odd.lua: has a structure without a name", "internal/feature/x/odd.lua: has another name for ffi.C, D", "internal/feature/x/odd.lua: looks names up in ffi.C",
		"internal/nginx/probe.go: touches version,", "lua/bad.lua: touches second,",
		"lua/bad.lua: touches called,", "lua/bad.lua: touches ngx_other_t,", "lua/bad.lua: touches number,", "lua/bad.lua: touches struct theirs,", "lua/bad.lua: touches text,",
	}
	if len(got) != len(want) || slices.ContainsFunc(want, func(w string) bool {
		return !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) })
	}) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := lint(t.TempDir()); err == nil {
		t.Error("lints without a list")
	}
}
