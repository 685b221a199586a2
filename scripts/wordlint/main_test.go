package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		path, text string
		want       []string
	}{
		{"a.md", "One space.\n\nThere is no host, and it is no longer there.\n", nil},
		{"a.md", "first\nA blank, and\nAnew.\n", []string{"2 blank", "3 Anew"}},
		{"a.md", "used in the\nplace of it\n", []string{"1 in the place of"}},
		{"a.md", "`ForetellGuard` and judge_all\n", []string{"1 ForetellGuard", "1 judge_all"}},
		{"a.md", "It is no slash.", []string{"1 is no slash"}},
		{"a.md", "Headgate, navigate, mostly, a blank line, must-staple", nil},
		{"a.md", "mostTries", []string{"1 mostTries"}},
		{"a.go", "package a\n\n// A gate is\n// told so.\nvar gateOf, x = `anew`, mostTries\n", []string{"3 gate", "4 told", "5 anew", "5 gateOf", "5 mostTries"}},
		{"a.go", "package a\n\nvar most, almost, hostMost int // most\n", nil},
		{"a.go", "package a\n\n// é in the\n// place of\nvar x = f(\"in the\", \"place of\")\n", []string{"3 in the place of"}},
		{"a.lua", "local MOST_TRIES = 2 -- it is\n-- told\nlocal s = 'nobody' .. \"whoever's\"\n", []string{"1 MOST_TRIES", "2 told", "3 nobody", "3 whoever"}},
		{"a.lua", "--[[ one\n judge ]]\nlocal judge = x.anew\n", []string{"2 judge", "3 judge", "3 anew"}},
		{"a.lua", "local gate -- headgatetest\n", []string{"1 gate"}},
	} {
		var got []string
		for _, h := range mustParse(t).check(c.path, c.text) {
			got = append(got, fmt.Sprint(h.line, " ", h.words))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q: got %q, want %q", c.path, c.text, got, c.want)
		}
	}
}

func mustParse(t *testing.T) rules {
	t.Helper()
	list, err := parseRules(words)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestParseRules(t *testing.T) {
	for _, bad := range []string{"any\tx", "often\tx\ty", "any\t(\ty"} {
		if _, err := parseRules("# a comment\n" + bad); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: got error %v, want one about line 2", bad, err)
		}
	}
}

func TestSplitName(t *testing.T) {
	for name, want := range map[string]string{
		"mostTries": "most tries", "MOST_TRIES": "most tries", "NewHTTPServer": "new http server", "judge": "judge",
	} {
		if got := splitName(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"good.md": "a space", "bad.md": "a blank", "sub/bad.lua": "-- anew", "testdata/bad.md": "blank", ".git/bad.md": "blank",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{dir, 1, dir + "/bad.md:1: \"blank\": write space\n" + dir + "/sub/bad.lua:1: \"anew\": write again\n"},
		{"-ext md " + dir, 1, dir + "/bad.md:1: \"blank\": write space\n"},
		{"-ext md -skip " + dir + "/bad.md " + dir, 0, ""},
		{"-skip " + dir + "/sub,DIR " + dir + "/sub " + dir + "/good.md", 0, ""},
		{"-count " + dir + "/sub", 1, " prose  names\n     1      0  anew (again)\n"},
		{dir + "/missing", 2, ""},
		{"-wrong", 2, ""},
	} {
		var out, errors strings.Builder
		if status := run(strings.Fields(c.args), &out, &errors); status != c.status || out.String() != c.want {
			t.Errorf("%s: got status %d, %q, want %d, %q", c.args, status, out.String(), c.status, c.want)
		}
	}
}
