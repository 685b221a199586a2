package resource_test

import (
	"testing"

	"github.com/headgate/headgate/internal/model/resource"
)

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

func TestNothingElseCanBePrinted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a b", "a;", "a\n", "a{", "a}", "$a", `a"`, "a'", `a\`, "a#", "é", "A\x00", "a/b"} {
		for what, make := range map[string]func(){
			"name":     func() { resource.NewName(text) },
			"word":     func() { resource.NewWord(text) },
			"module":   func() { resource.NewHandler("headgate."+text, "run") },
			"function": func() { resource.NewHandler("headgate.call", text) },
			"variable": func() { resource.VariableValue(text) },
			"value":    func() { resource.WordValue(text) },
		} {
			if !panics(make) {
				t.Errorf("%q was taken as a %s", text, what)
			}
		}
	}
	if !panics(func() { resource.NewHandler("os", "exit") }) {
		t.Error("a module of others was taken")
	}
}

func TestNamesAreDistinct(t *testing.T) {
	t.Parallel()
	dictionary := func(name string) resource.Resources {
		return resource.Resources{Dictionaries: []resource.Dictionary{{Name: resource.NewName(name), Size: 1 << 20}}}
	}
	if n := len(resource.Merge(dictionary("hg_a"), dictionary("hg_b")).Dictionaries); n != 2 {
		t.Errorf("%d dictionaries", n)
	}
	for name, merge := range map[string]func(){
		"twice":            func() { resource.Merge(dictionary("hg_a"), dictionary("hg_a")) },
		"without a prefix": func() { resource.Merge(dictionary("a")) },
		"a location that a path could name": func() {
			resource.Merge(resource.Resources{Locations: []resource.Location{{Name: resource.NewName("check")}}})
		},
	} {
		if !panics(merge) {
			t.Errorf("%s: taken", name)
		}
	}
}
