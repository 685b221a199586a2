package pcre

import (
	"errors"
	"testing"
)

// Where NGINX's Lua module has PCRE 1, patterns that only PCRE 2 takes are refused, and
// what both take is not.
func TestOldLibrary(t *testing.T) {
	lib, err := opened()
	if err != nil {
		t.Fatal(err)
	}
	if err := AlsoOld(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { lib.old.Store(nil) })
	for _, pattern := range []string{"^/a(?n)x", "^/a(?^)x", "^/(?xx)a", "a(?n)x", "^/a\x00b"} {
		_, err := Compile(pattern, Options{Caseless: true})
		wrong := (*PatternError)(nil)
		if !errors.As(err, &wrong) || wrong.Offset < 1 || wrong.Offset > len(pattern) || wrong.Message == "" {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	for _, pattern := range []string{"^/api(/|$)(.*)", `\.(?:js|css)$`, "(?i)a", "^(?!/admin)/.*", `(?<x>.)\k<x>`} {
		if _, err := Compile(pattern, Options{Caseless: true}); err != nil {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
