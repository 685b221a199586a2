package snippet

import (
	"encoding/json"
	"testing"

	"path/filepath"

	"golang.org/x/tools/txtar"
)

// FuzzParse demands that any text becomes something that JSON can hold, and that a closed
// text has no steps that let a request pass.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i := 0; i < len(archive.Files); i += 2 {
			f.Add(string(archive.Files[i].Data), i%3)
		}
	}
	f.Fuzz(func(t *testing.T, text string, place int) {
		if place < int(InLocation) || place > int(InAuth) {
			return
		}
		s := Parse(text, Place(place), Options{Administrator: []string{"geo"}})
		if _, err := json.Marshal(s.Program); err != nil {
			t.Fatal(err)
		}
		if len(text) > maxText && len(s.Refusals) == 0 {
			t.Error("a text that is too long is taken")
		}
	})
}
