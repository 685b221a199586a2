package snippet

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// places are the places by the names of files in the tests' archives.
func places() map[string]Place {
	return map[string]Place{"location": InLocation, "server": InServer, "auth": InAuth}
}

// update reads the flag -update, as other packages have it.
var update = flag.Bool("update", false, "write the results of golden tests")

// TestGolden compares what texts become with the archives in testdata.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no archives: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := golden(t, archive)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// golden writes each text of an archive with what it becomes behind it.
func golden(t *testing.T, archive *txtar.Archive) []byte {
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		name, place, _ := strings.Cut(f.Name, ".")
		if place == "json" {
			continue
		}
		at, ok := places()[place]
		if !ok {
			t.Fatalf("unknown place %q", place)
		}
		result := Parse(string(f.Data), at, Options{Defined: []string{"elsewhere"}, Administrator: []string{"geoip_country_code"}})
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := e.Encode(result); err != nil {
			t.Fatal(err)
		}
		out.Files = append(out.Files, f, txtar.File{Name: name + ".json", Data: b.Bytes()})
	}
	return txtar.Format(out)
}
