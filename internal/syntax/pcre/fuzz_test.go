package pcre

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// FuzzMatch checks any pattern on any text: the match ends soon, it lies in the
// text, and searchStart does not change the result.
func FuzzMatch(f *testing.F) {
	for _, c := range [][2]string{
		{"^/(a+)+$", "/aaaaaaaaaaaaaaaaaaaaab"},
		{`(?i)a\Kb|(?<x>.)\k<x>`, "xAb"},
		{"(?=.*[a-z]*x$)a*", "aaab"},
		{`(?m)^b$`, "a\nb\nc"},
		{`\Gb|c`, "bc"},
		{"(?J)(?<n>a)|(?<n>b)(?|(c)|(d))", "bd"},
		{`^(\((?>[^()]+|(?1))*\))`, "((a)b)"},
		{"(?x) a # c\n b", "ab"},
		{"(?<=a|bc)d", "bcd"},
		{"[[:alpha:]]{2,3}+\\x{e9}", "ab\xe9"},
		{"(?C1)a\\Ca", "a\xffa"},
		{"", ""},
	} {
		f.Add(c[0], c[1], false)
	}
	f.Fuzz(func(t *testing.T, pattern, subject string, caseless bool) {
		start := time.Now()
		options := Options{Caseless: caseless}
		p, err := Compile(pattern, options)
		if wrong := (*PatternError)(nil); err != nil {
			if !errors.As(err, &wrong) || wrong.Offset < 0 || wrong.Offset > len(pattern) {
				t.Fatalf("error %v for %q", err, pattern)
			}
			return
		}
		found, err := p.Find(subject)
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("%q on %d bytes took %s", pattern, len(subject), took)
		}
		for _, at := range found {
			if (at[0] < 0 || at[0] > at[1] || at[1] > len(subject)) && at != [2]int{-1, -1} {
				t.Fatalf("%q finds %v in %d bytes", pattern, found, len(subject))
			}
		}
		if err == nil && p.Text() != pattern && len(subject) < 100 {
			compareWithPlain(t, pattern, subject, options, found)
		}
	})
}

// compareWithPlain compares with a match without searchStart.
func compareWithPlain(t *testing.T, pattern, subject string, options Options, want [][2]int) {
	t.Helper()
	lib, err := opened()
	if err != nil {
		t.Fatal(err)
	}
	code, err := lib.compileText(pattern, options.bits())
	if err != nil {
		t.Fatal(err)
	}
	defer lib.codeFree(code)
	lib.jitCompile(code, jitComplete)
	plain := &Pattern{lib: lib, code: code, text: pattern, groups: len(want) - 1}
	if want == nil {
		plain.groups = 0
	}
	got, err := plain.Find(subject)
	if !errors.Is(err, ErrLimit) && !slices.Equal(got, want) {
		t.Fatalf("%q on %q: plain %v, %v; searching %v", pattern, subject, got, err, want)
	}
}
